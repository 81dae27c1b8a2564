"""An operator holds a chat and releases it, on the real stack: on the monitor and by the API."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from .api import KNIGHT, Reply, body, wait_until_idle
from .stack import Stack
from .test_chat import ENDLESS, answer, ask, state_line, stop, wait_for_more_words, wait_for_words

pytestmark = [pytest.mark.browser, pytest.mark.model]

HELD = "Held by an operator"


def press(monitor: Page, button: str, answer: str) -> None:
    """Press a button of grace's chat on the monitor, and answer what it asks."""
    monitor.get_by_role("button", name=f"{button}: grace's chat").click()
    dialog = monitor.get_by_role("dialog")
    expect(dialog).to_contain_text("grace's chat")
    dialog.get_by_role("button", name=answer, exact=True).click()
    expect(dialog).to_be_hidden()


def test_staff_hold_a_chat_on_the_monitor_its_reader_is_told_and_it_goes_on_once_released(
    sign_in, endless: Stack
):
    monitor, chat = sign_in("ada", endless), sign_in("grace", endless)
    monitor.goto("/monitor/")
    ask(chat, ENDLESS)
    wait_for_words(chat, 3)
    press(monitor, "Park and hold", "Cancel")
    wait_for_more_words(chat)

    press(monitor, "Park and hold", "Park and hold")
    expect(monitor.get_by_text("Held: grace's chat. Its place goes to others")).to_be_visible()
    expect(state_line(chat)).to_have_text(HELD)
    expect(chat.locator(".message--assistant .seconds").last).to_have_text(re.compile(r"\d+ s"))
    before = answer(chat).text_content() or ""
    chat.reload()
    expect(state_line(chat)).to_have_text(HELD)
    expect(answer(chat)).to_have_text(before)
    held = monitor.get_by_role("table", name=HELD)
    expect(held.get_by_role("row").filter(has_text="grace")).to_contain_text(re.compile(r"\d+ s"))

    press(monitor, "Release", "Release")
    expect(monitor.get_by_text("Released: grace's chat. It goes on when its turn comes.")).to_be_visible()
    expect(chat.get_by_text(HELD)).to_be_hidden()
    assert wait_for_more_words(chat).startswith(before)
    stop(chat)

    monitor.goto("/admin/inference/operatoraction/")
    rows = monitor.locator("#result_list tbody tr")
    expect(rows.nth(0)).to_contain_text("Release")
    expect(rows.nth(1)).to_contain_text("Park and hold")
    expect(rows.nth(1)).to_contain_text("ada")


def test_a_chat_that_has_ended_meanwhile_is_said_to(sign_in, endless: Stack):
    monitor, chat = sign_in("ada", endless), sign_in("grace", endless)
    monitor.goto("/monitor/")
    ask(chat, ENDLESS)
    monitor.get_by_role("button", name="Park and hold: grace's chat").click()
    stop(chat)
    monitor.get_by_role("dialog").get_by_role("button", name="Park and hold", exact=True).click()
    expect(monitor.locator("#outcome")).to_contain_text("it has ended")


def act(stack: Stack, action: str, slot: int) -> Reply:
    return Reply(stack.port, f"/slots/{slot}?action={action}", {})


def test_by_the_api_a_stream_is_held_and_released_and_its_text_stays_the_same(endless: Stack):
    request = body("/completion", KNIGHT, -1)
    with Reply(endless.port, "/completion", request) as stream:
        stream.wait_for("data: ")
        slot = stream.objects[0]["id_slot"]
        assert act(endless, "park", slot).json()["is_held"] is True
        stream.wait_for(": preempted")
        stream.wait_for(": preempt-keepalive")
        shown = Reply(endless.port, "/slots").json()[slot]
        assert (shown["is_held"], shown["is_preempted"]) == (True, True)
        again = act(endless, "park", slot)
        assert (again.status, again.json()["error"]["message"]) == (
            409,
            f"The chat in slot {slot} is parked already.",
        )
        assert act(endless, "unpark", slot).json()["is_held"] is False
        stream.wait_for(": resumed")
        for _ in range(30):
            stream.wait_for("data: ")
    assert stream.notices == [": preempted", ": resumed"]
    wait_until_idle(endless)
    with Reply(endless.port, "/completion", request) as undisturbed:
        for _ in stream.objects:
            undisturbed.wait_for("data: ")
    assert stream.text == undisturbed.text
    wait_until_idle(endless)
    idle = act(endless, "unpark", slot)
    assert (idle.status, "is idle" in idle.json()["error"]["message"]) == (409, True)
