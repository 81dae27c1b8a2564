"""The pictures of the documentation, taken of the real stack: docs/images/{chat,monitor,admin}.png.

`python -m tests.e2e.screenshots [FOLDER]`: with a folder, every page in both colour schemes and two widths
goes there instead.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from playwright.sync_api import Browser, Page, expect, sync_playwright

from .stack import ROOT, Stack, launch_chromium, signed_in
from .test_chat import FILLER, PAUSED, STORY, ask, state_line, wait_for_words

WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


def take(stack: Stack, browser: Browser, folder: Path, looks: list[tuple[str, str, dict[str, int]]]) -> None:
    """One picture a page and look, all while a chat is parked. A look is (suffix, colour scheme, size)."""
    with ExitStack() as opened:
        chat = opened.enter_context(signed_in(browser, stack, "grace"))
        for _, scheme, size in looks:
            opened.enter_context(signed_in(browser, stack, "ada", color_scheme=scheme, viewport=size))
        others = browser.contexts[-len(looks) :]
        for context in others:
            context.pages[0].goto("/monitor/")
            context.new_page().goto("/admin/")
        api = stack.complete(FILLER, 300)
        api.wait_until_it_writes()
        ask(chat, STORY)
        wait_for_words(chat, 20)
        expect(state_line(chat)).to_have_text(PAUSED)
        for (suffix, scheme, size), context in zip(looks, others, strict=True):
            monitor, admin = context.pages
            expect(monitor.get_by_role("table", name="Parked, in order of return")).to_contain_text("grace")
            shoot(monitor, folder / f"monitor{suffix}.png")
            shoot(admin, folder / f"admin{suffix}.png")
            chat.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            chat.set_viewport_size({"width": size["width"], "height": size["height"]})
            shoot(chat, folder / f"chat{suffix}.png")
        expect(state_line(chat)).to_have_text(PAUSED)
        api.result()


def shoot(page: Page, path: Path) -> None:
    page.screenshot(path=path, animations="disabled")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    looks = [("", "light", {"width": 1200, "height": 720})]
    if len(sys.argv) > 1:
        sizes = {"wide": WIDE, "narrow": NARROW}
        looks = [(f"-{s}-{w}", s, sizes[w]) for s in ("light", "dark") for w in sizes]
    expect.set_options(timeout=60_000)
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright:
        stack = Stack(Path(data), **{"ctx-size": 512, "parallel": 4, "temp": 0})
        stack.start()
        browser = launch_chromium(playwright)
        try:
            take(stack, browser, folder, looks)
        finally:
            browser.close()
            stack.stop()


if __name__ == "__main__":
    main()
