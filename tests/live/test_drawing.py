"""How an answer is drawn while it comes: in pieces, each once, and without what it was written with."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.e2e.api import until
from tests.e2e.stack import Stack

from . import writer
from .chats import chat_of
from .shapes import SHAPES

pytestmark = [pytest.mark.browser, pytest.mark.model]

MAKE = """async ([text, code]) => {
  const { Markdown } = await import("/static/dashboard/markdown.js");
  await (await import("/static/dashboard/maths.js")).load();
  document.getElementById("try")?.remove();
  const box = document.body.appendChild(Object.assign(document.createElement("div"), { id: "try" }));
  const view = new Markdown(box);
  return await new Function("view", "text", "box", `return (async () => { ${code} })()`)(view, text, box);
}"""


WHOLE = "view.set(text, true); view.draw(); return box.textContent;"


@pytest.fixture
def page(sign_in: Any) -> Page:
    found: Page = sign_in("grace")
    # So that a test may have its own few lines run on the page.
    found.route("**/try", lambda route: route.fulfill(body="<main></main>", content_type="text/html"))
    found.goto("/try")
    return found


def draw(page: Page, text: str, code: str = WHOLE) -> Any:
    return page.evaluate(MAKE, [text, code])


def shown(page: Page) -> Locator:
    return page.locator("#try")


MANY = r"""Words with **bold words**, *more words*, `some code`, ~~gone~~ and [a link](https://example.org/x).

# A title with `code`

- an item
- [x] and **another**

| name | value |
|---|--:|
| one | **two** |

```python
print("it")
```

1. first
2. second $x^2 + 1$ and \(y\)

$$
\frac{a}{b}
$$

> quoted *words*

---

The end, for $5 and $6."""


def test_what_it_is_written_with_is_not_seen_while_it_comes(page: Page, stack: Stack) -> None:
    code = """const seen = [];
      for (let end = 1; end <= text.length; end++) {
        view.show(text.slice(0, end));
        const all = [...box.querySelectorAll("*")].filter((e) => !e.matches(".maths, .maths *"));
        const words = all.flatMap((e) => [...e.childNodes]).filter((n) => n.nodeType === 3);
        seen.push(words.map((n) => n.data).join("\\n"));
      }
      return seen;"""
    for words in draw(page, MANY, code):
        assert not re.search(r"[*`~|\[\]\\#>]|\]\(|\$\$|\$x|---|^\d\.|- ", words), words


def test_formulas_are_mathml_and_prices_are_not(page: Page, stack: Stack) -> None:
    draw(
        page,
        "It is $x^2$ and \\(y_1\\), for $5 and $6, $10-$20 or US$7.\n\n"
        "$$\n\\frac{a}{b}\n$$\n\n\\[ z \\]\n\n$\\frac{$ x",
    )
    formulas = shown(page).locator("math")
    expect(formulas).to_have_count(4)
    expect(formulas.nth(0).locator("msup")).to_have_text("x2")
    expect(formulas.nth(2)).to_have_attribute("display", "block")
    expect(formulas.nth(2).locator("mfrac mi")).to_have_text(["a", "b"])
    expect(shown(page).locator("p").first).to_contain_text("for $5 and $6, $10-$20 or US$7.")
    expect(shown(page).locator("p").last).to_have_text("$\\frac{$ x")
    assert shown(page).locator("[style]").count() == 0


def test_formulas_stand_as_they_were_written_until_they_can_be_drawn(page: Page, stack: Stack) -> None:
    asked: list[str] = []
    held: list[Route] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(chat_of(stack, "It is *free*, not for $5 and $6."))
    expect(page.locator(".markdown em")).to_have_text("free")
    assert not [url for url in asked if "/temml-" in url]  # nor is it fetched where there is none

    sources = page.locator(".markdown code")
    formulas = page.locator(".markdown math")
    page.route("**/vendor/temml-*", lambda route: held.append(route))
    page.goto(chat_of(stack, "For $a<b$ and " + "many *words* " * 200 + "\n\n$$\ny_1\n$$\n\n`end`"))
    expect(sources).to_have_text(["$a<b$", "y_1", "end"])
    before = page.locator(".markdown").inner_text()
    held.pop().continue_()
    expect(formulas).to_have_count(2)
    expect(sources).to_have_text(["end"])
    assert len(page.locator(".markdown").inner_text()) > len(before) - 10  # nothing else was lost

    page.reload()
    until(lambda: bool(held))
    held.pop().abort()
    expect(sources).to_have_text(["$a<b$", "y_1", "end"])
    page.unroute("**/vendor/temml-*")
    # The network is back, so that it is tried again, as soon as it is known that it failed.
    until(lambda: page.evaluate("dispatchEvent(new Event('online'))") and formulas.count() == 2)
    expect(sources).to_have_text(["end"])


def test_a_link_may_be_defined_behind_its_words(page: Page, stack: Stack) -> None:
    draw(
        page,
        "See [it][1] and [that].\n\nMore.\n\n[1]: https://example.org/1\n[that]: https://example.org/2 'T'",
    )
    expect(shown(page).locator("a")).to_have_text(["it", "that"])
    expect(shown(page).locator("p")).to_have_text(["See it and that.", "More."])


def test_lists_in_lists_keep_their_numbers(page: Page, stack: Stack) -> None:
    draw(page, "3. three\n   - a\n     1. deep\n  - b\n\n   more\n4. four\n\n```\ncode\n```\n\n5. five")
    expect(shown(page).locator(":scope > * > ol").first).to_have_attribute("start", "3")
    expect(shown(page).locator(":scope > * > ol > li")).to_have_count(3)
    expect(shown(page).locator("ol > li > ul > li")).to_have_text([re.compile("a.*deep"), "b"])
    expect(shown(page).locator(":scope > * > ol").last).to_have_attribute("start", "5")


TOUCHED = """const touched = new Set();
  const look = new MutationObserver((all) => all.forEach(({ target }) => {
    const element = target.nodeType === 1 ? target : target.parentElement;
    if (element && done.has(element)) touched.add(element.outerHTML.slice(0, 200));
  }));
  const done = new Set();
  look.observe(box, { subtree: true, childList: true, characterData: true, attributes: true });
  for (let end = 0; end < text.length; end += 997) {
    view.show(text.slice(0, end));
    await null;
    const blocks = [...box.querySelectorAll(":scope > * > *")];
    blocks.length -= Math.min(blocks.length, 2); // the last may go on, or be none yet
    for (const block of blocks) for (const e of [block, ...block.querySelectorAll("*")]) done.add(e);
  }
  return [...touched];"""


def test_a_finished_block_is_never_touched_again(page: Page, stack: Stack) -> None:
    for name in ("prose", "mixed", "maths", "fences"):
        assert draw(page, SHAPES[name][:20_000], TOUCHED) == [], name


# However long its parts are, an answer is read a part at a time, and each part a few times in all.
READ = """let most = 0, calls = 0;
  const go = (until) => {
    const before = view.read;
    const isDrawn = view.draw(until);
    most = Math.max(most, view.read - before);
    calls++;
    return isDrawn;
  };
  for (let end = 1500; end < text.length; end += 1500) { view.set(text.slice(0, end)); while (!go(0)); }
  view.set(text, true);
  while (!go(0));
  return { most, all: view.read, calls, shown: box.textContent.length };"""


def test_a_long_answer_is_read_in_small_parts(page: Page, stack: Stack) -> None:
    for name, whole in SHAPES.items():
        text = whole[:15_000]
        figures = draw(page, text, READ)
        assert figures["most"] <= 5_000, name
        assert figures["all"] <= 8 * len(text), name
        assert len(draw(page, text)) == figures["shown"], name


def test_a_wide_table_and_long_lines_scroll_by_themselves(page: Page, stack: Stack) -> None:
    cells = " | ".join(f"a wide cell number {i}" for i in range(20))
    text = f"| {cells} |\n|{'---|' * 20}\n| {cells} |\n\n```\n{'long ' * 200}\n```\n"
    text += f"\n$$\n{' + '.join('abcdefgh' * 30)}\n$$\n"
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(chat_of(stack, text))
    expect(page.locator(".markdown table")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("document.getElementById('scroll').scrollWidth <= innerWidth")
    for box in page.locator(".table-box, .code pre, .maths").all():
        assert box.evaluate("(e) => e.scrollWidth > e.clientWidth && e.tabIndex === 0")


CODE = 'def f(x):\n    """It is."""\n    return "a" + str(x)  # so\n'


def test_code_is_coloured_and_can_be_copied_with_the_keyboard(page: Page, stack: Stack) -> None:
    many = SHAPES["code"][10:9000]
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(chat_of(stack, f"```python\n{CODE}```\n\n```nothing\nx\n```\n\n```\n{many}\n```"))
    block = page.locator(".code").first
    expect(block.locator(".hljs-keyword")).to_have_text(["def", "return"])
    expect(block.locator(".hljs-comment")).to_have_text("# so")
    expect(block.locator(".code-language")).to_have_text("python")
    expect(block.locator("pre")).to_have_text(CODE)
    button = block.get_by_role("button", name="Copy code")
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#announced")).to_have_text("Copied")
    expect(button).to_have_text("Copied")
    expect(button).to_be_focused()
    assert page.evaluate("navigator.clipboard.readText()") == CODE.rstrip("\n")
    # What is selected by hand has each line once, also where it is in pieces.
    page.locator(".code").last.locator("pre").evaluate("(e) => getSelection().selectAllChildren(e)")
    assert page.evaluate("getSelection().toString().trimEnd()") == many.rstrip("\n")


def test_code_can_be_copied_where_the_browser_has_no_clipboard(page: Page, stack: Stack) -> None:
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.goto(chat_of(stack, f"```python\n{CODE}```"))
    page.get_by_role("button", name="Copy code").click()
    expect(page.locator("#announced")).to_have_text("Copied")
    page.get_by_label("Message", exact=True).focus()
    page.keyboard.press("ControlOrMeta+V")
    expect(page.get_by_label("Message", exact=True)).to_have_value(CODE.rstrip("\n"))


def test_all_of_a_long_chat_is_drawn_and_its_end_is_in_view(page: Page, stack: Stack) -> None:
    page.goto(chat_of(stack, *(SHAPES["mixed"][:6000] for _ in range(12)), "the *very* last"))
    expect(page.locator(".message--assistant .text.markdown")).to_have_count(13)
    expect(page.get_by_text("the very last")).to_be_in_viewport()
    expect(page.locator("em", has_text="very")).to_be_visible()


RENDERED = """[...document.querySelectorAll(".message--assistant .text > .formulas")].map((section) =>
  section.firstElementChild.checkVisibility({ contentVisibilityAuto: true }))"""


def test_an_answer_of_60000_characters_in_three_seconds_is_drawn_whole(page: Page, stack: Stack) -> None:
    text = SHAPES["mixed"][:30_000] + "\n\n" + SHAPES["maths"][:30_000]
    with writer.answer(stack, text, 3.0) as path:
        page.goto(path)
        expect(page.locator(".message--assistant")).to_have_attribute("data-state", "finished")
        expected = draw_elsewhere(page, text)
        expect(page.locator(".message--assistant .text")).to_have_text(expected)
        # Of all the formulas only those in view, or near, are laid out and painted.
        until(lambda: page.evaluate(RENDERED)[0] is False)
        assert page.evaluate(RENDERED)[-1] is True
        assert page.evaluate(RENDERED).count(True) <= 5


def draw_elsewhere(page: Page, text: str) -> str:
    other = page.context.new_page()
    try:
        other.route("**/try", lambda route: route.fulfill(body="<main></main>", content_type="text/html"))
        other.goto("/try")
        return str(draw(other, text))
    finally:
        other.close()


def test_stop_works_while_60000_characters_arrive(page: Page, stack: Stack) -> None:
    with writer.answer(stack, SHAPES["prose"], 3.0, open=True) as path:
        page.goto(path)
        expect(page.locator(".message--assistant")).to_have_attribute("data-state", "writing")
        page.get_by_role("button", name="Stop").click()
        expect(page.locator(".message--assistant").get_by_role("status")).to_contain_text("Stopped")
        expect(page.get_by_role("button", name="Send")).to_be_visible()
        expect(page.locator(".message--assistant .text h2").first).to_have_text("A part of it")


def test_a_reader_who_scrolls_up_is_not_pulled_down(page: Page, stack: Stack) -> None:
    page.set_viewport_size({"width": 900, "height": 600})
    box = "document.getElementById('scroll')"
    with writer.answer(stack, SHAPES["prose"], 20.0, open=True) as path:
        page.goto(path)
        latest = page.get_by_role("button", name="Latest")
        until(lambda: page.evaluate(f"{box}.scrollHeight > 3 * {box}.clientHeight"))
        expect(latest).to_be_hidden()
        page.locator("#scroll").hover()
        page.mouse.wheel(0, -30)  # less than a line or two
        expect(latest).to_be_visible()
        at, height = page.evaluate(f"[{box}.scrollTop, {box}.scrollHeight]")
        until(lambda: page.evaluate(f"{box}.scrollHeight > {height} + 400"))
        assert abs(page.evaluate(f"{box}.scrollTop") - at) < 60  # the wheel's movement may have gone on
        latest.click()
        until(lambda: page.evaluate(f"{box}.scrollHeight - {box}.scrollTop - {box}.clientHeight < 2"))
        expect(latest).to_be_hidden()
