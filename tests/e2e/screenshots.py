"""The pictures of the documentation, taken of the real stack: docs/images/{chat,monitor,admin}[-dark].png.

`python -m tests.e2e.screenshots [FOLDER]`: with a folder, every page in both colour schemes and two widths
goes there instead.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Literal, NamedTuple

from playwright.sync_api import Browser, Page, expect, sync_playwright

from .stack import ROOT, Stack, launch_chromium, signed_in
from .test_chat import (
    ENDLESS,
    FOX,
    PAUSED,
    ask,
    state_line,
    stop,
    wait_for_words,
)

# The chats that grace has had: title -> what she asked and what was answered, in turns.
CODE = """Give `sorted` a function that tells what to look at:

```python
people = [("Grace", 36), ("Ada", 28)]

for name, age in sorted(people, key=lambda person: person[0]):
    print(name, "is", age)
```

| call | gives |
|---|---|
| `sorted(people)` | a *new* list |
| `people.sort()` | nothing: it sorts in place |"""
LISTS = "Whatever you put into it, in the order in which you put it there: numbers, names, other lists."
BREAD = "Most likely the starter is not ready yet. Feed it twice a day until it doubles in four hours."
CHATS = {
    "Thank-you note to the band": ["A short note, please.", "Dear all, you made the evening. Thank you!"],
    "Sourdough that rises": ["Why is my bread so flat?", BREAD],
    "Train times": ["Is the night train daily?", "Not on Saturdays. On all other days it leaves at 21:40."],
    "All the whole numbers": ["Say this again and again.", FOX * 22],
    "Sorting a list of people": [
        *["What can a list hold?", LISTS],
        *["How do I sort a list of people by name, in Python?", CODE],
    ],
}
MUCH = FOX * 24 + ENDLESS
OTHERS = ["noah", "mia", "finn"]
# On the monitor: chats have been parked so often that the timeline tells of it.
TURNS = """() => document.querySelectorAll(".lane [data-state=parked]").length >= 4"""
LONG_CHAT, CODE_CHAT, WAITING_CHAT = "All the whole numbers", "Sorting a list of people", "Train times"
MAKE_CHATS = """
from datetime import timedelta
from django.contrib.auth.models import User
from django.utils import timezone
from inference.models import Chat, Generation, Message
grace = User.objects.get(username="grace")
for name in {others!r}:
    User.objects.create(username=name, password=grace.password)
for i, (title, turns) in enumerate({chats!r}.items()):
    at = timezone.now() - timedelta(hours=20 - i)
    chat = Chat.objects.create(user=grace, title=title, titled_by="person")
    for n, text in enumerate(turns):
        said = chat.add([Message.Role.USER, Message.Role.ASSISTANT][n % 2], text)
    question, answer = turns[-2:]
    Generation.objects.create(
        state="finished", api="chat", model="default", user=grace, message=said, stream=True,
        prompt_tokens=40 + len(question) // 4, completion_tokens=len(answer) // 4, finish_reason="stop",
        ttft_s=0.1, created_at=at, accepted_at=at, started_at=at, finished_at=at + timedelta(seconds=4),
    )
"""


class Look(NamedTuple):
    suffix: str
    scheme: Literal["light", "dark"]
    width: int
    height: int


DOCS = [Look("", "light", 1200, 760), Look("-dark", "dark", 1200, 760)]
ALL = [Look(f"-{s}-{w}", s, w, 900) for s in ("light", "dark") for w in (1440, 390)]


def make_chats(stack: Stack) -> None:
    stack.shell(MAKE_CHATS.format(chats=CHATS, others=OTHERS))


def open_chat(page: Page, title: str) -> Page:
    page.goto("/")
    page.get_by_role("link", name=title).first.click()
    expect(page).to_have_title(re.compile(re.escape(title)))
    return page


def be_busy(pages: list[Page], monitor: Page) -> None:
    """Some minutes for the timeline: chats of which one more is there than slots, so that they take turns."""
    for page in pages:
        page.goto("/")
        ask(page, ENDLESS)
        expect(page).to_have_url(re.compile("/chats/"))
    monitor.wait_for_function(TURNS, timeout=300_000)
    for page in pages:
        stop(page)


def take(stack: Stack, browser: Browser, folder: Path, looks: list[Look]) -> None:
    """One picture a page and look, all while a chat is parked."""
    with (
        signed_in(browser, stack, "grace") as chat,
        signed_in(browser, stack, "noah") as noah,
        signed_in(browser, stack, "mia") as mia,
        signed_in(browser, stack, "finn") as finn,
        signed_in(browser, stack, "ada") as monitor,
        chat.context.new_page() as long,
        chat.context.new_page() as waiting,
        monitor.context.new_page() as admin,
    ):
        monitor.goto("/monitor/")
        be_busy([noah, mia, finn, admin], monitor)
        # The pages are open before anything is written, so that little time passes while one chat is parked.
        for page, title in ((chat, CODE_CHAT), (long, LONG_CHAT), (waiting, WAITING_CHAT)):
            open_chat(page, title)
        admin.goto("/admin/")
        noah.goto("/")
        for page, text in ((long, ENDLESS), (noah, MUCH)):
            ask(page, text)
            wait_for_words(page, 3)
        # It holds the fewest cells, so it is the one that is parked.
        ask(chat, "And by age, the oldest first?")
        expect(state_line(chat)).to_have_text(PAUSED)
        ask(waiting, "And is there a restaurant car?")
        expect(chat.locator("#chat-list")).to_contain_text("waiting")
        parked = monitor.get_by_role("table", name="Parked, in order of return")
        expect(parked.get_by_role("row").filter(has_text="grace")).to_contain_text(
            re.compile(r"([2-9]|\d\d) s")
        )
        for look in looks:
            for name, page in (("chat", chat), ("monitor", monitor), ("admin", admin)):
                page.emulate_media(color_scheme=look.scheme)
                page.set_viewport_size({"width": look.width, "height": look.height})
                path = folder / f"{name}{look.suffix}.png"
                if name == "monitor":
                    take_monitor(page, path)
                else:
                    page.screenshot(path=path, animations="disabled")
        expect(state_line(chat)).to_have_text(PAUSED)
    stack.cancel_all()


def take_monitor(page: Page, path: Path) -> None:
    """As far as the end of the timeline."""
    timeline = page.locator("#past .panel").first.bounding_box()
    width = page.viewport_size and page.viewport_size["width"]
    assert timeline
    assert width
    height = timeline["y"] + timeline["height"] + 16
    page.screenshot(
        path=path,
        animations="disabled",
        full_page=True,
        clip={"x": 0, "y": 0, "width": width, "height": height},
    )


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=120_000)
    with tempfile.TemporaryDirectory() as data, sync_playwright() as playwright:
        stack = Stack(Path(data), **{"ctx-size": 1280, "parallel": 3, "temp": 0, "rotate-after": 25})
        stack.flags.append("--context-shift")
        stack.start()
        browser = launch_chromium(playwright)
        try:
            make_chats(stack)
            take(stack, browser, folder, ALL if len(sys.argv) > 1 else DOCS)
        finally:
            browser.close()
            stack.stop()


if __name__ == "__main__":
    main()
