"""What an operator does on the monitor, on the real stack: said before, asked about, said after, and kept."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from .api import FIRST, Reply
from .stack import ONLOOKER, Stack
from .test_by_hand import press
from .test_chat import (
    ENDLESS,
    NEARLY_ALL,
    PAUSED,
    ask,
    state_line,
    stop,
    wait_for_more_words,
    wait_for_the_end,
    wait_for_words,
)

pytestmark = [pytest.mark.browser, pytest.mark.model]


def choose(monitor: Page, item: str) -> None:
    """Something else that can be done with grace's chat."""
    monitor.get_by_role("button", name="More: grace's chat").first.click()
    monitor.get_by_role("menu", name="grace's chat").get_by_role("menuitem", name=item).click()


def rows_of_actions(monitor: Page):
    monitor.goto("/admin/inference/operatoraction/")
    return monitor.locator("#result_list tbody tr")


def test_a_chat_is_cancelled_only_after_a_yes(sign_in, endless: Stack):
    monitor, chat = sign_in("ada", endless), sign_in("grace", endless)
    monitor.goto("/monitor/")
    ask(chat, ENDLESS)
    wait_for_words(chat, 3)
    choose(monitor, "Cancel…")
    dialog = monitor.get_by_role("dialog", name="Cancel grace's chat?")
    expect(dialog).to_contain_text("Its answer ends here, for good")
    dialog.get_by_role("button", name="Let it go on").click()
    wait_for_more_words(chat)

    choose(monitor, "Cancel…")
    dialog.get_by_role("button", name="Cancel it").click()
    expect(monitor.locator("#outcome")).to_have_text(
        re.compile(r"Cancelled: grace's chat\. \d+ tokens of its answer stay\.")
    )
    expect(monitor.locator("#outcome")).to_have_attribute("data-at", re.compile(r"^\d\d:\d\d:\d\d$"))
    wait_for_the_end(chat)
    expect(state_line(chat)).to_have_text("Stopped by an operator. “Continue” goes on from here.")
    row = rows_of_actions(monitor).first
    expect(row).to_contain_text("Cancel")
    expect(row).to_contain_text(re.compile(r"ada.*after \d+ tokens"))


def test_a_parked_chat_gets_a_higher_priority_with_the_keyboard_alone(sign_in, endless: Stack):
    monitor, chat = sign_in("ada", endless), sign_in("grace", endless)
    monitor.goto("/monitor/")
    with endless.complete(NEARLY_ALL, -1, n_keep=-1, **FIRST) as other:
        other.wait_until_it_writes()
        ask(chat, ENDLESS)
        expect(state_line(chat)).to_have_text(PAUSED)
        monitor.get_by_role("table", name="Parked").get_by_role("button", name="More: grace's chat").focus()
        monitor.keyboard.press("Enter")
        expect(monitor.get_by_role("menuitem", name="Cancel…")).to_be_focused()
        monitor.keyboard.press("ArrowDown")
        monitor.keyboard.press("Enter")
        dialog = monitor.get_by_role("dialog", name="Give grace's chat high priority?")
        expect(dialog).to_contain_text("moves up in the line")
        monitor.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        choose(monitor, "Priority high…")
        dialog.get_by_role("button", name="Make it high").click()
        expect(monitor.locator("#outcome")).to_have_text("Grace's chat had normal priority and has high now.")
        expect(monitor.get_by_role("table", name="Parked")).to_contain_text("high")
    stop(chat)
    expect(rows_of_actions(monitor).first).to_contain_text("from normal to high")
    monitor.goto("/admin/inference/generation/")
    expect(monitor.locator("#result_list tbody tr").filter(has_text="grace").first).to_contain_text("high")


def test_a_worker_is_drained_and_takes_chats_again(sign_in, endless: Stack):
    monitor, chat = sign_in("ada", endless), sign_in("grace", endless)
    monitor.goto("/monitor/")
    ask(chat, ENDLESS)
    wait_for_words(chat, 3)
    dialog = monitor.get_by_role("dialog")
    monitor.get_by_role("button", name=re.compile("^Drain: worker ")).click()
    expect(dialog).to_contain_text("The one that it has goes on to the end")
    expect(dialog).to_contain_text("No other worker takes chats")
    dialog.get_by_role("button", name="Drain").click()
    try:
        expect(monitor.locator("#outcome")).to_have_text(
            re.compile("^Worker .* takes no new chats. The one that it has goes on to the end")
        )
        expect(monitor.locator(".panel-head")).to_contain_text(["draining"])
        expect(monitor.locator("#headline")).to_contain_text("No worker takes new chats: all are draining.")
        assert Reply(endless.port, "/health").status == 503
        wait_for_more_words(chat)
        stop(chat)
        ask(chat, ENDLESS)  # it waits
        expect(chat.locator(".message--user")).to_have_count(2)
    finally:
        monitor.get_by_role("button", name=re.compile("^Take chats again: worker ")).click()
        dialog.get_by_role("button", name="Take chats again").click()
        expect(monitor.locator("#outcome")).to_have_text(re.compile("takes chats again.$"))
    wait_for_words(chat, 3)
    stop(chat)
    rows = rows_of_actions(monitor)
    expect(rows.nth(0)).to_contain_text("End of draining")
    expect(rows.nth(1)).to_contain_text("Drain")


def test_what_has_ended_meanwhile_is_said_to(sign_in, endless: Stack):
    monitor, chat = sign_in("ada", endless), sign_in("grace", endless)
    monitor.goto("/monitor/")
    ask(chat, ENDLESS)
    wait_for_words(chat, 3)
    choose(monitor, "Priority low…")
    stop(chat)
    monitor.get_by_role("dialog").get_by_role("button", name="Make it low").click()
    expect(monitor.locator("#outcome.error")).to_contain_text("it has ended")


def test_who_may_only_look_sees_all_and_finds_nothing_to_press(sign_in, endless: Stack):
    monitor, chat = sign_in(ONLOOKER, endless), sign_in("grace", endless)
    monitor.goto("/monitor/")
    ask(chat, ENDLESS)
    expect(monitor.get_by_role("table", name="Slots")).to_contain_text("grace")
    expect(monitor.get_by_text("You may look, but not act")).to_be_visible()
    assert not monitor.locator("#workers").get_by_role("button").count()
    stop(chat)


def test_what_was_survives_a_reload_because_the_server_keeps_it(sign_in, endless: Stack):
    monitor, chat = sign_in("ada", endless), sign_in("grace", endless)
    monitor.goto("/monitor/")
    ask(chat, ENDLESS)
    wait_for_words(chat, 10)
    press(monitor, "Park and hold", "Park and hold")
    press(monitor, "Release", "Release")
    wait_for_more_words(chat)
    monitor.get_by_role("button", name="More: grace's chat").first.click()
    menu = monitor.get_by_role("menu", name="grace's chat")
    expect(menu).to_be_visible()
    stop(chat)
    expect(menu).to_be_hidden()  # there is nothing to be done with it any more
    lane = monitor.get_by_role(
        "img", name=re.compile(r"^Slot \d in the last 5 minutes: .*grace: held.*grace: writing")
    )
    expect(lane).to_be_visible()
    speed = monitor.get_by_role("img", name=re.compile(r"^Tokens per second: .*at most [1-9]"))
    expect(speed).to_be_visible()
    monitor.reload()
    expect(lane).to_be_visible()
    expect(speed).to_be_visible()
    for span in ("1 h", "24 h"):
        monitor.get_by_role("button", name=span).click()
        expect(speed).to_be_visible()
