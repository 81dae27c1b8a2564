"""The chat in a real browser, on the real model."""

from __future__ import annotations

import re
from functools import partial

import pytest
from playwright.sync_api import Page, expect

from .api import FIRST, until
from .stack import IS_DRAWN, Stack

pytestmark = [pytest.mark.browser, pytest.mark.model]

STORY = "Tell me a long story about a brave knight and a dragon."
ENDLESS = "List all the whole numbers."
FOX = "The quick brown fox jumps over the lazy dog and runs into the forest. "
FILLER, NEARLY_ALL = FOX * 18, FOX * 28  # of the pool
PAUSED = re.compile("^Paused (while|for|to|until)")  # why is for the scheduler to say
REMEMBER_PAUSES = """addEventListener("DOMContentLoaded", () => {
  const look = () => {
    const lines = [...document.querySelectorAll("[role=status]")];
    if (lines.some((line) => line.textContent.startsWith("Paused"))) sessionStorage.wasPaused = "yes";
  };
  new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
});"""


def ask(page: Page, text: str) -> None:
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def was_paused(page: Page) -> bool:
    """With REMEMBER_PAUSES, whether a chat was paused in this tab."""
    return bool(page.evaluate("sessionStorage.wasPaused") == "yes")


def answer(page: Page):
    return page.locator(".message--assistant .text").last


def state_line(page: Page):
    return page.locator(".message--assistant").last.get_by_role("status")


def wait_for_words(page: Page, at_least: int) -> str:
    """The answer once it has that many words."""
    expect(answer(page)).to_have_text(re.compile(rf"^\s*(\S+\s+){{{at_least}}}"))
    return answer(page).text_content() or ""


def wait_for_more_words(page: Page) -> str:
    """The answer once it has more words than now."""
    return wait_for_words(page, len((answer(page).text_content() or "").split()) + 3)


def stop(page: Page) -> None:
    page.get_by_role("button", name="Stop").click()
    wait_for_the_end(page)


def wait_for_the_end(page: Page) -> None:
    expect(page.locator(".message[data-events]")).to_have_count(
        0, timeout=240_000
    )  # also before its script runs
    until(lambda: page.evaluate(IS_DRAWN))
    expect(page.get_by_role("button", name="Send")).to_be_visible(timeout=240_000)


def test_an_answer_streams_under_its_question(sign_in, endless: Stack):
    page = sign_in("grace", endless)
    ask(page, ENDLESS)
    expect(page).to_have_url(re.compile(r"/chats/\d+/$"))
    expect(page.locator(".message--user .text")).to_have_text(ENDLESS)
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    early = wait_for_words(page, 3)
    later = wait_for_words(page, 20)
    assert later.startswith(early)
    stop(page)
    expect(page.get_by_role("navigation", name="Chats").get_by_role("link").first).to_have_text(ENDLESS)


def test_a_finished_answer_is_there_after_a_reload_and_the_chat_goes_on(sign_in):
    page = sign_in("grace")
    ask(page, "What is the capital of France? Answer in one word.")
    expect(answer(page)).not_to_be_empty()
    wait_for_the_end(page)
    text = answer(page).text_content()
    assert text
    ask(page, "And of Italy?")
    expect(page.locator(".message--assistant")).to_have_count(2)
    wait_for_the_end(page)
    page.reload()
    expect(page.locator(".message--assistant .text").first).to_have_text(text)
    expect(page.locator(".message--user")).to_have_count(2)


def test_shift_enter_breaks_the_line(sign_in):
    page = sign_in("grace")
    field = page.get_by_label("Message", exact=True)
    field.press_sequentially("one")
    page.keyboard.press("Shift+Enter")
    field.press_sequentially("two")
    expect(field).to_have_value("one\ntwo")
    expect(page).to_have_url(re.compile(r"/$"))


def test_stop_ends_the_answer_and_keeps_its_text(sign_in, endless: Stack):
    page = sign_in("grace", endless)
    ask(page, ENDLESS)
    text = wait_for_words(page, 5)
    page.get_by_role("button", name="Stop").click()
    expect(state_line(page)).to_have_text("Stopped.")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    page.reload()
    expect(state_line(page)).to_have_text("Stopped.")
    expect(answer(page)).to_have_text(re.compile(f"^{re.escape(text)}"))


def test_a_reload_in_mid_answer_shows_the_text_so_far_and_goes_on(sign_in, endless: Stack):
    page = sign_in("grace", endless)
    ask(page, ENDLESS)
    before = wait_for_words(page, 10)
    page.reload()
    after = wait_for_words(page, len(before.split()) + 15)
    assert after.startswith(before)
    assert wait_for_more_words(page).startswith(after)
    stop(page)


def test_a_reader_who_scrolls_up_is_not_pulled_down(sign_in, endless: Stack):
    page = sign_in("grace", endless, viewport={"width": 390, "height": 400})
    ask(page, ENDLESS)
    box = page.locator("#scroll")
    wait_for_words(page, 60)  # on the chat's own page
    until(lambda: box.evaluate("box => box.scrollHeight - box.clientHeight") > 150)
    page.mouse.move(200, 200)
    page.mouse.wheel(0, -10_000)
    expect(page.get_by_role("button", name="Latest")).to_be_visible()
    words = len((answer(page).text_content() or "").split())
    wait_for_words(page, words + 20)
    assert box.evaluate("box => box.scrollTop") == 0
    page.get_by_role("button", name="Latest").click()
    expect(page.get_by_role("button", name="Latest")).to_be_hidden()
    stop(page)


def test_a_chat_that_finds_no_room_is_paused_and_goes_on_from_where_it_was(sign_in, endless: Stack):
    page = sign_in("grace", endless)
    ask(page, ENDLESS)
    wait_for_words(page, 3)
    elsewhere = page.context.new_page()
    elsewhere.goto("/")
    listed = elsewhere.locator("#chat-list .chat-state").first
    expect(listed).to_have_text("writing")
    with endless.complete(NEARLY_ALL, -1, n_keep=-1, **FIRST):
        expect(state_line(page)).to_have_text(PAUSED)
        detail = page.locator(".message--assistant .detail")
        expect(detail).to_have_text(re.compile("next to go on, waits for room"))
        expect(page).to_have_title(re.compile("^Paused · "))
        expect(listed).to_have_text("paused")
        expect(page.locator(".message--assistant .seconds").last).to_have_text(re.compile(r"\d+ s"))
        before = answer(page).text_content() or ""
        page.reload()  # also while parked
        expect(state_line(page)).to_have_text(PAUSED)
        expect(answer(page)).to_have_text(before)
    expect(state_line(page)).to_have_text(re.compile("Resumed after|Writing"))
    expect(page).not_to_have_title(re.compile("^Paused"))
    expect(listed).to_have_text("writing")
    assert wait_for_more_words(page).startswith(before)
    stop(page)


def test_two_chats_that_do_not_fit_together_take_turns(sign_in, endless: Stack):
    pages = [sign_in("grace", endless), sign_in("ada", endless)]
    for page in pages:
        page.add_init_script(REMEMBER_PAUSES)
        ask(page, ENDLESS)
        expect(page).to_have_url(re.compile(r"/chats/\d+/$"))
    for page in pages:
        until(partial(was_paused, page))
        before = answer(page).text_content() or ""
        assert wait_for_more_words(page).startswith(before)
    for page in pages:
        stop(page)


def test_two_chats_that_do_not_fit_together_both_finish(sign_in):
    pages = [sign_in("grace"), sign_in("ada")]
    for page in pages:
        page.add_init_script(REMEMBER_PAUSES)
        ask(page, STORY)
    for page in pages:
        expect(page).to_have_url(re.compile(r"/chats/\d+/$"))
        wait_for_the_end(page)
        expect(state_line(page)).not_to_have_text(re.compile("No more|Paused"))
        assert len((answer(page).text_content() or "").split()) > 100
    assert any(map(was_paused, pages))


def test_a_question_that_fits_no_context_gets_a_line_that_says_what_to_do(sign_in):
    page = sign_in("grace")
    ask(page, "word " * 600)
    expect(state_line(page)).to_have_text(re.compile("too long for the model. Shorten your message"))
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_text_is_shown_as_text(sign_in):
    page = sign_in("grace")
    text = "<img src=x onerror=document.title='broken'> <b>hello</b>"
    ask(page, text)
    expect(page.locator(".message--user .text")).to_have_text(text)
    assert page.locator(".message img, .message b").count() == 0
    wait_for_the_end(page)
