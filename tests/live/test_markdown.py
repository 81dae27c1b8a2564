"""What a model writes is shown as Markdown, and is never more than that."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.stack import ROOT, Stack

pytestmark = [pytest.mark.browser, pytest.mark.model]

VENDOR = ROOT / "dashboard/static/dashboard/vendor"
GOOD = """# A *boat*

It has **two** sails, `rope` and ~~oars~~:

1. up
2. down
   - [x] slowly

> said the captain

| a | b |
|---|--:|
| 1 | 2 |

```python
if a < b: print("<b>&amp;</b>")
```

See <https://example.org/a?b=c&d> or [there](https://example.org "title").
Line two"""
HOSTILE = """<script>document.title = "broken"</script>
<img src=x onerror="document.title = 'broken'">
<svg onload="document.title = 'broken'"><math><mi xlink:href="javascript:alert(1)">x</mi></math></svg>
<iframe srcdoc="<script>parent.document.title = 'broken'</script>"></iframe>
<form action="//evil.test"><input name="csrfmiddlewaretoken"><button formaction="javascript:x">x</button>
<a href="javascript:document.title='broken'" onclick="document.title='broken'">click</a>
<style>* { background: url(https://evil.test/) }</style><link rel=stylesheet href=//evil.test/x.css>
<base href="https://evil.test/"><meta http-equiv=refresh content="0;url=https://evil.test/">
<div id="composer" name="text" class="error" style="position:fixed" data-events="/x">over all</div>

[a](javascript:document.title='broken') [b](  JaVaScRiPt:alert%281%29) [c](data:text/html,<script>1</script>)
[d](vbscript:x) [e](//evil.test/e) [f](/accounts/logout/) [g](&#106;avascript:alert(1)) <javascript:alert(1)>
![pixel](https://evil.test/pixel.png) ![x" onerror="alert(1)](x) [![i](https://evil.test/i.png)](https://evil.test/)

```"><script>document.title='broken'</script>
code </code></pre><script>document.title='broken'</script>
```

| <img src=x onerror=alert(1)> | `</td><script>` |
|---|---|
| <b onmouseover=alert(1)>x</b> | [x](javascript:alert(1)) |

[ref]: javascript:alert(1)
[ref] &lt;script&gt;alert(1)&lt;/script&gt; \\<script>alert(1)\\</script>"""
SHOW = """async ([text, step]) => {
  const { Markdown } = await import("/static/dashboard/markdown.js");
  await (await import("/static/dashboard/maths.js")).load();
  document.getElementById("try")?.remove();
  const box = document.body.appendChild(Object.assign(document.createElement("div"), { id: "try" }));
  const view = new Markdown(box);
  for (let end = step; end < text.length; end += step) view.show(text.slice(0, end));
  view.set(text, true);
  view.draw();
  return box.innerHTML;
}"""
# Of every element that has come to be inside, but for the head of code, which is ours: what it is and has.
CENSUS = """() => {
  const all = [...document.querySelectorAll("#try *:not(.code-head, .code-head *)")];
  return { tags: [...new Set(all.map((e) => e.localName))],
    attributes: [...new Set(all.flatMap((e) => e.getAttributeNames()))],
    classes: [...new Set(all.flatMap((e) => [...e.classList]))],
    links: all.filter((e) => e.hasAttribute("href")).map((e) => [e.href, e.target, e.rel]) };
}"""
HARMLESS = {
    "div", "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li", "pre", "code",
    "strong", "em", "del", "a", "table", "thead", "tbody", "tr", "th", "td", "span", "math", "mi",
}  # fmt: skip
ATTRIBUTES = {
    "href",
    "title",
    "start",
    "target",
    "rel",
    "class",
    "scope",
    "tabindex",
    "role",
    "aria-label",
    "dir",
}
CLASSES = {"code", "maths", "table-box", "task", "right", "center"}


@pytest.fixture
def page(sign_in: Any) -> Page:
    found: Page = sign_in("grace")
    return found


def test_vendored_scripts_are_those_of_their_packages() -> None:
    rows = re.findall(r"^\| (\S+\.js) \|.*`(\w{64})` \|$", (VENDOR / "README.md").read_text(), re.M)
    assert {name for name, _ in rows} == {path.name for path in VENDOR.glob("*.js")}
    for name, digest in rows:
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest


def test_markdown_is_shown_as_what_it_means(page: Page, stack: Stack) -> None:
    page.evaluate(SHOW, [GOOD, len(GOOD)])
    shown = page.locator("#try")
    for tag, text in [
        ("h1 em", "boat"), ("strong", "two"), ("del", "oars"), ("ol > li", "up"), ("ul > li", "☑ slowly"),
        ("blockquote", "said the captain"), ("td", "1"), ("pre code", 'if a < b: print("<b>&amp;</b>")'),
    ]:  # fmt: skip
        expect(shown.locator(tag).first).to_have_text(re.compile(re.escape(text)))
    assert page.evaluate(CENSUS)["links"] == [
        ["https://example.org/a?b=c&d", "_blank", "noopener noreferrer"],
        ["https://example.org/", "_blank", "noopener noreferrer"],
    ]
    assert shown.locator("br").count() == 1


def test_hostile_markdown_leaves_nothing_but_harmless_elements(page: Page, stack: Stack) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for step in (len(HOSTILE), 7):  # at once, and as it would stream
        page.evaluate(SHOW, [HOSTILE, step])
        census = page.evaluate(CENSUS)
        assert set(census["tags"]) <= HARMLESS
        assert set(census["attributes"]) <= ATTRIBUTES
        assert set(census["classes"]) <= CLASSES
        for href, target, rel in census["links"]:
            assert re.match(r"https?://(evil|example)\.", href), href
            assert (target, rel) == ("_blank", "noopener noreferrer")
    page.locator("#try a").evaluate_all("(all) => all.forEach((a) => a.dispatchEvent(new Event('click')))")
    assert "broken" not in page.title()
    assert [url for url in asked if "evil.test" in url] == []


def test_tags_are_shown_as_text(page: Page, stack: Stack) -> None:
    page.evaluate(SHOW, ['Use <b>bold</b> and\n\n<div class="x">\n\nas in `<p>`.', 3])
    expect(page.locator("#try")).to_have_text(re.compile(r'Use <b>bold</b> and<div class="x">as in <p>\.'))


def test_a_text_that_streams_ends_as_it_would_have_begun(page: Page, stack: Stack) -> None:
    for text in (GOOD, HOSTILE):
        at_once = page.evaluate(SHOW, [text, len(text)])
        for step in (1, 5, 32):
            assert page.evaluate(SHOW, [text, step]) == at_once


KEEP = """async ([before, after]) => {
  const { Markdown } = await import("/static/dashboard/markdown.js");
  const box = document.body.appendChild(document.createElement("div"));
  const view = new Markdown(box);
  view.show(before);
  const range = document.createRange();
  range.selectNodeContents(box);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  const selected = getSelection().toString();
  const all = [...box.querySelectorAll("*")];
  view.show(after);
  return all.every((e) => e.isConnected) && getSelection().toString().startsWith(selected);
}"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("one\n\ntwo", "one\n\ntwo and more\n\nthree"),
        ("- one\n- two", "- one\n- two and more\n- three"),
        ("```\nlet a", "```\nlet a = 1;\nlet b = 2;\n```\n\nend"),
        ("a **bold** word", "a **bold** word and *another*"),
    ],
)
def test_what_is_selected_stays_while_text_comes(page: Page, stack: Stack, before: str, after: str) -> None:
    assert page.evaluate(KEEP, [before, after])


SIDES = """() => [...document.querySelectorAll("#try :is(p, li):not(:has(p))")].map((one) => {
  const range = document.createRange();
  range.selectNodeContents(one);
  const [box, words] = [one, range].map((it) => it.getBoundingClientRect());
  return box.right - words.right < words.left - box.left ? "right" : "left";
})"""


def test_each_paragraph_and_list_begins_at_the_side_of_its_own_words(page: Page, stack: Stack) -> None:
    page.evaluate(SHOW, ["سلام، كيف حالك؟\n\nOf boats.\n\n1. واحد\n2. two", 100])
    assert page.evaluate(SIDES) == ["right", "left", "right", "left"]
    expect(page.locator("#try ol")).to_have_css("direction", "rtl")


@pytest.mark.parametrize(
    "text", [">" * 20_000 + "x", "[" * 20_000, "*a " * 5_000, "- " * 2_000 + "x", "$\\frac" * 5_000]
)
def test_nesting_without_end_does_not_hang_the_page(page: Page, stack: Stack, text: str) -> None:
    page.evaluate(SHOW, [text, len(text)])
    assert set(page.evaluate(CENSUS)["tags"]) <= HARMLESS


WRITE = """
import sys
from django.contrib.auth.models import User
from inference.models import Chat, Generation
chat = Chat.objects.create(user=User.objects.get(username="grace"), title="hostile")
chat.add("user", sys.argv[-1])
answer = chat.add("assistant", {text!r})
Generation.objects.create(message=answer, user=chat.user, state="finished")
print(chat.pk)
"""


def test_an_answer_of_long_ago_is_sanitised_and_a_question_is_text(page: Page, stack: Stack) -> None:
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", WRITE.format(text=HOSTILE + GOOD)]
    done = subprocess.run(command, cwd=ROOT, env=stack.environ(), capture_output=True, text=True, check=True)
    page.goto(f"/chats/{done.stdout.strip()}/")
    answer = page.locator(".message--assistant .text")
    expect(answer.locator("strong").first).to_be_visible()
    assert answer.locator("img, script, iframe, form, style, [onerror], [style], [id], .error").count() == 0
    assert page.locator("#composer").count() == 1
    assert page.locator(".message--user .text *").count() == 0
    assert "broken" not in page.title()
