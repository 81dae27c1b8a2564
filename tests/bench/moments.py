"""The chat page at the moments when it has the most to draw at once, in a Chromium that is slowed down: for
how long it stands still, and how soon a click is answered."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from playwright.sync_api import Page, expect, sync_playwright

from tests.e2e.stack import IS_DRAWN, Stack, launch_chromium, signed_in
from tests.live import writer
from tests.live.chats import chat_of
from tests.live.shapes import SHAPES

LONG = ("prose", "mixed", "code", "table", "maths")
MESSAGES = 200
SECONDS = 3.0
SLOWER = 4
WATCH_FRAMES = """(() => {
  let last = performance.now();
  window.longest = 0;
  const look = () => {
    const now = performance.now();
    window.longest = Math.max(window.longest, now - last);
    last = now;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})()"""
# From before the page's first script on.
WATCH = (
    WATCH_FRAMES
    + """;
window.taken = 0; // milliseconds from a click to the frame that shows what came of it; 0: a frame
new PerformanceObserver((list) => {
  const clicks = list.getEntries().filter((entry) => entry.name === "click");
  window.taken = Math.max(window.taken, ...clicks.map((click) => click.duration));
}).observe({ type: "event", durationThreshold: 16 });
"""
)
FOLLOW = """async (path) => {
  const [, url] = /data-events="([^"]+)"/.exec(await (await fetch(path)).text());
  window.source = new EventSource(url);
}"""
LENGTH = "document.querySelector('#messages').textContent.length"


@contextmanager
def a_page() -> Iterator[tuple[Stack, Page]]:
    """A stack, and grace's page there."""
    expect.set_options(timeout=120_000)
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        stack = Stack(Path(directory), **{"ctx-size": 512, "parallel": 2})
        stack.start()
        browser = launch_chromium(playwright)
        try:
            with signed_in(browser, stack, "grace") as page:
                yield stack, page
        finally:
            browser.close()
            stack.stop()


@contextmanager
def slowed(page: Page) -> Iterator[None]:
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    yield
    session.send("Emulation.setCPUThrottlingRate", {"rate": 1})
    session.detach()


def wait_until_drawn(page: Page) -> None:
    while not page.evaluate("document.querySelector('.markdown:not(:empty)') !== null"):
        page.wait_for_timeout(100)
    length = -1
    while not page.evaluate(IS_DRAWN) or page.evaluate(LENGTH) != length:
        length = page.evaluate(LENGTH)
        page.wait_for_timeout(500)


def view(page: Page, path: str) -> float:
    """Milliseconds between two frames, at most, when a chat is opened."""
    with slowed(page):
        page.goto(path)
        wait_until_drawn(page)
        return float(page.evaluate("window.longest"))


def catch_up(stack: Stack, page: Page, text: str) -> float:
    """The same when an answer that is on its way has come this far already."""
    with writer.answer(stack, text, 0.1, open=True) as path:
        page.goto("/account/")
        page.evaluate(FOLLOW, path)
        page.wait_for_timeout(1500)
        return view(page, path)


def stop(stack: Stack, page: Page, text: str) -> float:
    """Milliseconds from a click on Stop to the frame that shows that it was taken, while the text comes."""
    with writer.answer(stack, text, SECONDS, open=True) as path, slowed(page):
        page.goto(path)
        button = page.locator("#stop")
        expect(button).to_be_visible()
        box = button.bounding_box()
        assert box is not None
        page.wait_for_timeout(1000 * SECONDS / 2)
        page.mouse.click(box["x"] + 5, box["y"] + 5)
        expect(page.locator(".message--assistant")).to_have_attribute("data-state", "stopped")
        page.wait_for_timeout(300)
        return float(page.evaluate("window.taken"))


def report(rounds: int) -> None:
    print(f"the longest stop of the page, or a click's answer, ms, slowed down {SLOWER} times", flush=True)
    with a_page() as (stack, page):
        page.context.add_init_script(WATCH)

        def row(name: str, measure: Callable[[], float]) -> None:
            figures = [measure() for _ in range(rounds)]
            print(f"{name:40s} {statistics.median(figures):7.0f}  ({max(figures):.0f})", flush=True)

        many = chat_of(stack, *([SHAPES["mixed"][:600]] * (MESSAGES // 2)))
        row(f"{MESSAGES} messages are opened", partial(view, page, many))
        for name in LONG:
            text = SHAPES[name]
            row(f"an old answer is opened: {name}", partial(view, page, chat_of(stack, text)))
            row(f"a new one has come so far: {name}", partial(catch_up, stack, page, text))
            row(f"Stop, while it comes: {name}", partial(stop, stack, page, text))
