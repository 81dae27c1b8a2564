"""What a reader is told of an answer: each state has its words, its sign and its place in list and title."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from inference.messages import (
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

from .axe import assert_accessible
from .stack import Stack
from .tale import STOPPED, PlayedFeed, Tale

pytestmark = [pytest.mark.browser, pytest.mark.model]

SIGN = "(said) => getComputedStyle(said, '::before').maskImage"
HEAR = """() => {
  window.heard = [];
  const said = document.querySelector(".message--assistant .said");
  const hear = new MutationObserver(() => heard.push(said.textContent));
  hear.observe(said, { childList: true, characterData: true });
}"""
SIGHT = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def end(stop_type: Any) -> Finished:
    return Finished(stop_type, "", "", 5, 2, False, 0, Timings(), 0, 0.0, 0.1)


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

    def __init__(self, page: Page, tale: Tale, feed: PlayedFeed | None = None) -> None:
        self.page, self.tale = page, tale
        self.feed = feed or PlayedFeed(page)
        page.goto(tale.path)
        self.line = page.locator(".message--assistant .state")
        self.said = self.line.get_by_role("status")
        self.in_list = page.locator("#chat-list [aria-current]")
        self.signs: dict[str, str] = {}

    def place(self, state: str, **more: Any) -> None:
        """Let the feed tell where the answer is."""
        self.feed.tell({self.tale.chat: {"generation": self.tale.generation, "state": state, **more}})

    def sees(self, *words: str, badge: str = "", title: str = "") -> None:
        """Words after words in the line, the word in the list, and what the tab's title begins with."""
        expect(self.line).to_have_text(re.compile(".*".join(map(re.escape, words))))
        expect(self.in_list).to_have_text(re.compile(rf"Boats\s*{badge}$"))
        expect(self.page).to_have_title(f"{title}Boats · Berth")
        self.signs.setdefault(words[0], self.said.evaluate(SIGN))


def test_each_state_has_its_words_its_sign_and_is_said_once(page: Page, tale: Tale):
    reader = Reader(page, tale)
    reader.sees("Waiting for a place", badge="waiting")
    page.evaluate(HEAR)
    for turn, words in [(12, "12th in the queue"), (3, "3rd in the queue"), (2, "2nd in the queue")]:
        reader.place("waiting", turn=turn)
        reader.sees("Waiting for a place", words, badge="waiting")
    reader.place("waiting", turn=1, needs=180)
    words = "next in the queue, waits for room for about 180 tokens"
    reader.sees("Waiting for a place", words, badge="waiting")

    tale.tell(Started(0))
    reader.place("reading", done=100, total=400)
    reader.sees("Reading the chat", "100 of 400 tokens", badge="reading")
    bar = reader.line.get_by_role("progressbar", name="How much of the chat is read")
    expect(bar).to_have_js_property("value", 100)
    expect(bar).to_have_js_property("max", 400)
    reader.place("reading", done=300, total=400)
    expect(bar).to_have_js_property("value", 300)
    assert_accessible(page)

    tale.tell(Token(1, "Boats "))
    reader.sees("Writing", badge="writing")
    expect(bar).to_be_hidden()

    tale.tell(Preempted(0, "pressure", 90, 100))
    paused = {"badge": "paused", "title": "Paused · "}
    why = {"cause": "pressure", "since": time.time() - 75}
    reader.place("paused", turn=3, **why)
    reader.sees("Paused while another chat finishes", "1 min", "2 chats go before it", **paused)
    reader.place("paused", turn=2, **why)
    reader.sees("Paused while another chat finishes", "1 chat goes before it", **paused)
    reader.place("paused", turn=1, needs=60, **why)
    words = "next to go on, waits for room for about 60 tokens"
    reader.sees("Paused while another chat finishes", words, **paused)
    assert_accessible(page)
    reader.place("resuming")
    reader.sees("Paused while another chat finishes", "about to go on", **paused)

    tale.tell(Resumed(0, 76.0), Token(2, "float "))
    reader.sees("Resumed after 1 min 16 s", badge="writing")
    reader.sees("Writing", badge="writing")

    said = [words.split(" ")[0] for words in page.evaluate("heard")]
    assert said == ["Reading", "Writing…", "Paused", "Resumed", "Writing…"]

    tale.tell(Preempted(0, "hand", 90, 100))
    reader.place("held", cause="hand", since=time.time() - 5)
    reader.sees("Held by an operator", "goes on when it is released", badge="held", title="Held · ")
    tale.tell(Released())
    reader.sees("Paused", "an operator has released it", " s", **paused)
    tale.tell(Resumed(0, 9.0))

    tale.tell(Preempted(-1, "worker", 0, 0, "recompute"))
    reader.sees("Moving to another worker", badge="moving", title="Moving · ")
    tale.tell(Resumed(0, 2.0))
    reader.place("reading", done=40, total=440)
    reader.sees("Reading the chat", "40 of 440 tokens", badge="reading")
    tale.tell(Token(3, "well"), STOPPED)
    reader.sees("Stopped.")
    expect(page.locator(".message--assistant .text")).to_have_text("Boats float well")
    reader.feed.tell({tale.chat + 1: {"generation": "of another", "state": "paused"}})
    reader.sees("Stopped.", title="1 chat paused · ")
    reader.feed.tell({})
    reader.sees("Stopped.")
    assert reader.signs.pop("Paused") == reader.signs["Paused while another chat finishes"]
    assert len(set(reader.signs.values())) == len(reader.signs)


CAUSES = {
    "admission": "Paused until there is room for your message",
    "rotation": "Paused to let a chat go on that has waited longer",
    "priority": "Paused for a chat that goes first",
    "forced": "Paused by the server",
    "decode": "Paused while another chat finishes",
}


def test_it_is_said_why_an_answer_is_paused_how_it_ended_and_what_to_do(page: Page, endless: Stack):
    feed, causes = PlayedFeed(page), dict(CAUSES)
    ends: list[tuple[Event, str]] = [
        (end("limit"), "Start a new chat to go on."),
        (Failed(500, "server_error", "the worker died"), "the worker died. “Continue” goes on from here."),
        (end("eos"), "The answer is complete."),
    ]
    for last, words in ends:
        reader = Reader(page, Tale(endless), feed)
        reader.tale.tell(Started(0), Token(1, "Boats "))
        reader.sees("Writing", badge="writing")
        while causes:
            cause, why = causes.popitem()
            reader.tale.tell(Preempted(0, cause, 9, 99))
            reader.sees(why, badge="paused", title="Paused · ")
            reader.tale.tell(Resumed(0, 3.0), Token(2, "float "))
            reader.sees("Resumed after 3 s", badge="writing")
        reader.tale.tell(last)
        reader.sees(words)
        expect(page.get_by_role("button", name="Send")).to_be_visible()
        reader.tale.forget()


def test_a_page_that_is_out_of_sight_lets_go_of_its_stream_and_still_tells_in_its_title(
    page: Page, tale: Tale
):
    page.clock.install()
    reader = Reader(page, tale)
    tale.tell(Started(0), Token(1, "Boats "))
    reader.sees("Writing", badge="writing")
    with page.expect_event("requestfailed", lambda request: "/events" in request.url):
        page.evaluate(SIGHT, True)
        for _ in range(2):  # a feed that is silent for longer is taken for lost
            reader.place("writing")
            page.clock.fast_forward(5_500)
    reader.place("paused", cause="pressure", since=time.time(), turn=1)
    expect(page).to_have_title("Paused · Boats · Berth")
    tale.tell(Preempted(0, "pressure", 9, 99), Resumed(0, 1.0), Token(2, "float"))
    page.evaluate(SIGHT, False)
    reader.sees("Resumed after 1 s", badge="writing")
    expect(page.locator(".message--assistant .text")).to_have_text("Boats float")


def test_who_is_signed_out_is_told_and_shown_the_way_back(page: Page, tale: Tale):
    reader = Reader(page, tale)
    reader.feed.close(4403)
    notice = page.get_by_role("alert").filter(has_text="You have been signed out.")
    expect(notice.get_by_role("link")).to_have_attribute("href", f"/accounts/login/?next={tale.path}")
