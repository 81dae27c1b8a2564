"""An operator holds a chat and releases it, on the real stack: on the monitor and by the API."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from .api import Reply, body
from .stack import Stack
from .test_chat import STORY, answer, ask, state_line, wait_for_the_end, wait_for_words

pytestmark = [pytest.mark.browser, pytest.mark.model]

HELD = "Held by an operator"


def press(monitor: Page, button: str, answer: str) -> None:
    """Press a button of grace's chat on the monitor, and answer what it asks."""
    monitor.get_by_role("button", name=f"{button}: grace's chat").click()
    dialog = monitor.get_by_role("dialog")
    expect(dialog).to_contain_text("grace's chat")
    dialog.get_by_role("button", name=answer, exact=True).click()
    expect(dialog).to_be_hidden()


def test_staff_hold_a_chat_on_the_monitor_its_reader_is_told_and_it_goes_on_once_released(sign_in):
    monitor, chat = sign_in("ada"), sign_in("grace")
    monitor.goto("/monitor/")
    ask(chat, STORY)
    wait_for_words(chat, 3)
    press(monitor, "Park and hold", "Cancel")
    wait_for_words(chat, 10)

    press(monitor, "Park and hold", "Park and hold")
    expect(monitor.get_by_text("Held: grace's chat.")).to_be_visible()
    expect(state_line(chat)).to_have_text(HELD)
    expect(chat.locator(".message--assistant .seconds").last).to_have_text(re.compile(r"\d+ s"))
    before = answer(chat).text_content() or ""
    chat.reload()
    expect(state_line(chat)).to_have_text(HELD)
    expect(answer(chat)).to_have_text(before)
    held = monitor.get_by_role("table", name=HELD)
    expect(held.get_by_role("row").filter(has_text="grace")).to_contain_text(re.compile(r"\d+ s"))

    press(monitor, "Release", "Release")
    expect(monitor.get_by_text("Released: grace's chat.")).to_be_visible()
    expect(state_line(chat)).not_to_have_text(HELD)
    wait_for_the_end(chat)
    after = answer(chat).text_content() or ""
    assert after.startswith(before)
    assert len(after) > len(before)

    monitor.goto("/admin/inference/operatoraction/")
    rows = monitor.locator("#result_list tbody tr")
    expect(rows.nth(0)).to_contain_text("Release")
    expect(rows.nth(1)).to_contain_text("Park and hold")
    expect(rows.nth(1)).to_contain_text("ada")


def test_a_chat_that_has_ended_meanwhile_is_said_to(sign_in, stack: Stack):
    monitor, chat = sign_in("ada"), sign_in("grace")
    monitor.goto("/monitor/")
    ask(chat, STORY)
    monitor.get_by_role("button", name="Park and hold: grace's chat").click()
    chat.get_by_role("button", name="Stop").click()
    wait_for_the_end(chat)
    monitor.get_by_role("dialog").get_by_role("button", name="Park and hold", exact=True).click()
    expect(monitor.locator("#outcome")).to_contain_text("it has ended")


def act(stack: Stack, action: str, slot: int) -> Reply:
    return Reply(stack.port, f"/slots/{slot}?action={action}", {})


def test_by_the_api_a_stream_is_held_and_released_and_its_text_stays_the_same(stack: Stack):
    request = body("/completion", "Once upon a time there was a brave knight who", 60)
    with Reply(stack.port, "/completion", request) as undisturbed:
        text = undisturbed.read().text
    with Reply(stack.port, "/completion", request) as stream:
        stream.wait_for("data: ")
        slot = stream.objects[0]["id_slot"]
        assert act(stack, "park", slot).json()["is_held"] is True
        stream.wait_for(": preempted")
        stream.wait_for(": preempt-keepalive")
        shown = Reply(stack.port, "/slots").json()[slot]
        assert (shown["is_held"], shown["is_preempted"]) == (True, True)
        again = act(stack, "park", slot)
        assert (again.status, again.json()["error"]["message"]) == (
            409,
            f"The chat in slot {slot} is parked already.",
        )
        assert act(stack, "unpark", slot).json()["is_held"] is False
        stream.read()
    assert stream.notices == [": preempted", ": resumed"]
    assert stream.text == text
    assert stream.objects[-1]["tokens_predicted"] == 60
    idle = act(stack, "unpark", slot)
    assert (idle.status, "is idle" in idle.json()["error"]["message"]) == (409, True)
