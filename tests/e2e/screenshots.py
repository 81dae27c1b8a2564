"""The pictures of the documentation, taken of the real stack: docs/images/{chat,monitor,admin}.png.

`python -m tests.e2e.screenshots [FOLDER]`: with a folder, every page in both colour schemes and two widths
goes there instead.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

from .stack import ROOT, Stack, launch_chromium, signed_in
from .test_chat import FILLER, PAUSED, STORY, ask, state_line, wait_for_words

WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


def take(stack: Stack, browser: Browser, folder: Path, looks: list[tuple[str, str, dict[str, int]]]) -> None:
    """One picture a page and look, all while a chat is parked. A look is (suffix, colour scheme, size)."""
    with (
        signed_in(browser, stack, "grace") as resident,
        signed_in(browser, stack, "ada") as monitor,
        monitor.context.new_page() as chat,
        monitor.context.new_page() as admin,
    ):
        monitor.goto("/monitor/")
        admin.goto("/admin/")
        api = stack.complete(FILLER, 200)
        api.wait_until_it_writes()
        ask(resident, STORY)
        wait_for_words(resident, 8)
        chat.goto("/")
        ask(chat, STORY)  # the last to come holds the fewest cells, so it is the one that is parked
        expect(state_line(chat)).to_have_text(PAUSED)
        parked = monitor.get_by_role("table", name="Parked, in order of return")
        expect(parked.get_by_role("row").filter(has_text="ada")).to_contain_text(re.compile(r"[2-9] s"))
        for suffix, scheme, size in looks:
            for name, page in (("monitor", monitor), ("admin", admin), ("chat", chat)):
                page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
                page.set_viewport_size({"width": size["width"], "height": size["height"]})
                page.screenshot(path=folder / f"{name}{suffix}.png", animations="disabled")
        expect(state_line(chat)).to_have_text(PAUSED)
        api.result()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    looks = [("", "light", {"width": 1200, "height": 720})]
    if len(sys.argv) > 1:
        sizes = {"wide": WIDE, "narrow": NARROW}
        looks = [(f"-{s}-{w}", s, sizes[w]) for s in ("light", "dark") for w in sizes]
    expect.set_options(timeout=120_000)
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
