"""What a reader is told of an answer: each state has its words, its sign and its place in list and title."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from inference.messages import (
    Accepted,
    Event,
    Failed,
    Finished,
    Preempted,
    Released,
    Resumed,
    Started,
    Timings,
    Token,
)

from .stack import Stack
from .tale import STOPPED, PlayedFeed, Tale

pytestmark = [pytest.mark.browser, pytest.mark.model]

SIGN = "(said) => getComputedStyle(said, '::before').maskImage"
HEAR = """() => {
  window.heard = [];
  const said = document.querySelector(".message--assistant .said");
  new MutationObserver(() => heard.push(said.textContent)).observe(said, { childList: true, characterData: true });
}"""


@pytest.fixture
def tale(endless: Stack) -> Iterator[Tale]:
    tale = Tale(endless)
    yield tale
    tale.forget()


@pytest.fixture
def page(sign_in: Any, endless: Stack) -> Page:
    found: Page = sign_in("grace", endless)
    return found


class Reader:
    """What is seen of the tale on its page."""

    def __init__(self, page: Page, tale: Tale) -> None:
        self.page, self.tale = page, tale
        self.feed = PlayedFeed(page)
        page.goto(tale.path)
        self.line = page.locator(".message--assistant .state")
        self.said = self.line.get_by_role("status")
        self.detail = self.line.locator(".detail")
        self.in_list = page.locator("#chat-list [aria-current]")
        self.signs: dict[str, str] = {}

    def place(self, state: str, **more: Any) -> None:
        """Let the feed tell where the answer is."""
        chat = {"generation": self.tale.generation, "state": state, **more}
        self.feed.tell(**{f"c{self.tale.chat}": chat})

    def sees(self, *words: str, badge: str = "", title: str = "Boats · Berth") -> None:
        """Words after words in the line, the word in the list of chats, and the tab's title."""
        expect(self.line).to_have_text(re.compile(".*".join(map(re.escape, words))))
        expect(self.in_list).to_have_text(re.compile(rf"Boats\s*{badge}$"))
        expect(self.page).to_have_title(title)
        self.signs[words[0]] = self.said.evaluate(SIGN)


def test_each_state_has_its_words_its_sign_and_is_said_once(page: Page, tale: Tale):
    reader = Reader(page, tale)
    tale.tell(Accepted(400, 1, -1))
    reader.sees("Waiting for a place", badge="waiting")
    page.evaluate(HEAR)
    for turn, words in [(12, "12th in the queue"), (3, "3rd in the queue"), (2, "2nd in the queue")]:
        reader.place("waiting", turn=turn)
        reader.sees("Waiting for a place", words, badge="waiting")
    reader.place("waiting", turn=1, needs=180)
    reader.sees("Waiting", "next in the queue, waits for room for about 180 tokens", badge="waiting")

    tale.tell(Started(0))
    reader.place("reading", done=100, total=400)
    reader.sees("Reading the chat", "100 of 400 tokens", badge="reading")
    bar = reader.line.get_by_role("progressbar", name="How much of the chat is read")
    expect(bar).to_have_js_property("value", 100)
    expect(bar).to_have_js_property("max", 400)
    reader.place("reading", done=300, total=400)
    expect(bar).to_have_js_property("value", 300)

    tale.tell(Token(1, "Boats "))
    reader.sees("Writing", badge="writing")
    expect(bar).to_be_hidden()

    since = time.time() - 75
    tale.tell(Preempted(0, "pressure", 90, 100))
    reader.place("paused", cause="pressure", since=since, turn=3)
    paused = {"badge": "paused", "title": "Paused · Boats · Berth"}
    reader.sees("Paused while another chat finishes", "1 min", "2 chats go before it", **paused)
    reader.place("paused", cause="pressure", since=since, turn=2)
    reader.sees("Paused", "1 chat goes before it", **paused)
    reader.place("paused", cause="pressure", since=since, turn=1, needs=60)
    reader.sees("Paused", "next to go on, waits for room for about 60 tokens", **paused)
    reader.place("resuming")
    reader.sees("Paused", "about to go on", **paused)

    tale.tell(Resumed(0, 76.0), Token(2, "float "))
    reader.sees("Resumed after 1 min 16 s", badge="writing")
    reader.sees("Writing", badge="writing")

    heard = page.evaluate("heard")
    assert [words.split(" ")[0] for words in heard] == [
        "Reading",
        "Writing…",
        "Paused",
        "Resumed",
        "Writing…",
    ]

    tale.tell(Preempted(0, "hand", 90, 100))
    reader.place("held", cause="hand", since=time.time() - 5)
    reader.sees(
        "Held by an operator", "goes on when it is released", badge="held", title="Held · Boats · Berth"
    )
    tale.tell(Released())
    reader.sees("Paused: an operator has released it", " s", **paused)
    tale.tell(Resumed(0, 9.0))

    tale.tell(Preempted(-1, "worker", 0, 0, "recompute"))
    reader.sees("Moving to another worker", badge="moving", title="Moving · Boats · Berth")
    tale.tell(Resumed(0, 2.0))
    reader.place("reading", done=40, total=440)
    reader.sees("Reading the chat", "40 of 440 tokens", badge="reading")
    tale.tell(Token(3, "well"), STOPPED)
    reader.sees("Stopped.")
    expect(page.locator(".message--assistant .text")).to_have_text("Boats float well")
    alike = ("Waiting", "Waiting for a place"), ("Paused", "Paused while another chat finishes")
    for one, other in alike:
        assert reader.signs.pop(one) == reader.signs[other]
    reader.signs.pop("Paused: an operator has released it")
    assert len(set(reader.signs.values())) == len(reader.signs)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (Finished("limit", "", "", 5, 2, False, 0, Timings(), 0, 0.0, 0.1), "Start a new chat to go on."),
        (Failed(500, "server_error", "the worker died"), "the worker died. Send your message again."),
        (Finished("eos", "", "", 5, 2, False, 0, Timings(), 0, 0.0, 0.1), "The answer is complete."),
    ],
)
def test_an_answer_that_ends_says_how_and_what_to_do(page: Page, tale: Tale, end: Event, words: str):
    reader = Reader(page, tale)
    tale.tell(Accepted(400, 1, -1), Started(0), Token(1, "Boats "))
    reader.sees("Writing", badge="writing")
    tale.tell(end)
    reader.sees(words)


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("admission", "Paused until there is room for your message"),
        ("rotation", "Paused to let a chat go on that has waited longer"),
        ("priority", "Paused for a chat that goes first"),
        ("forced", "Paused by the server"),
        ("decode", "Paused while another chat finishes"),
    ],
)
def test_why_an_answer_is_paused(page: Page, tale: Tale, cause: str, words: str): ...
