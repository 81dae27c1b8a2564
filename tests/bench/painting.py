"""How long the chat page stands still while an answer of 60,000 characters comes within 3 s, in a Chromium
that is slowed down four times.

Against the way that is common, which is measured in turn with it on the same stream: the whole text is
parsed, sanitised and put into the page anew at each event.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

from playwright.sync_api import CDPSession, Page, expect

from tests.e2e.stack import IS_DRAWN, Stack
from tests.live import writer
from tests.live.shapes import SHAPES

from .moments import SECONDS, SLOWER, WATCH_FRAMES, a_page

Way = Callable[[Page, str, Callable[[], None]], None]
PEER = """async (path) => {
  const { default: DOMPurify } = await import("/static/dashboard/vendor/dompurify-3.5.0.js");
  const { Marked } = await import("/static/dashboard/vendor/marked-18.2.1.js");
  const marked = new Marked({ gfm: true, breaks: true });
  const [, url] = /data-events="([^"]+)"/.exec(await (await fetch(path)).text());
  const box = document.body.appendChild(document.createElement("main"));
  const source = new EventSource(url);
  let text = "";
  source.addEventListener("token", ({ data }) => {
    text += JSON.parse(data);
    box.replaceChildren(DOMPurify.sanitize(marked.parse(text), { RETURN_DOM_FRAGMENT: true }));
  });
  await new Promise((done) => source.addEventListener("finished", done));
  source.close();
}"""


def ours(page: Page, path: str, slow: Callable[[], None]) -> None:
    page.goto(path)
    slow()
    page.evaluate(WATCH_FRAMES)
    expect(page.locator(".message--assistant")).to_have_attribute("data-state", "finished")
    while not page.evaluate(IS_DRAWN):
        page.wait_for_timeout(100)


def peer(page: Page, path: str, slow: Callable[[], None]) -> None:
    page.route("**/try", lambda route: route.fulfill(body="<!doctype html>", content_type="text/html"))
    page.goto("/try")
    slow()
    page.evaluate(WATCH_FRAMES)
    page.evaluate(PEER, path)


def longest(
    stack: Stack, page: Page, text: str, way: Callable[[Page, str, Callable[[], None]], None]
) -> float:
    """Milliseconds between two frames, at most."""
    session: CDPSession = page.context.new_cdp_session(page)

    def slow(rate: int = SLOWER) -> None:
        session.send("Emulation.setCPUThrottlingRate", {"rate": rate})

    with writer.answer(stack, text, SECONDS) as path:
        way(page, path, slow)
        page.wait_for_timeout(200)  # a frame more
        found = page.evaluate("window.longest")
    slow(1)
    page.goto("/")
    return float(found)


def report(rounds: int) -> None:
    print(
        f"longest stop of the page, ms, slowed down {SLOWER} times: berth, the whole anew, ratio", flush=True
    )
    with a_page() as (stack, page):
        for name, text in SHAPES.items():
            pairs = []
            for i in range(rounds):
                ways = [ours, peer] if i % 2 else [peer, ours]
                figures = {way: longest(stack, page, text, way) for way in ways}
                pairs.append((figures[ours], figures[peer]))
            a, b = (statistics.median(pair[k] for pair in pairs) for k in (0, 1))
            ratio = statistics.median(x / y for x, y in pairs)
            print(f"{name:18s} {a:7.0f} {b:7.0f}  {ratio:.3f}", flush=True)
