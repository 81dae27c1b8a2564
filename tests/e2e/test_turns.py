"""What is done with the turns of a chat, in a real browser."""

from __future__ import annotations

import subprocess
import sys

import pytest
from playwright.sync_api import Locator, Page, expect

from .stack import ROOT, Stack
from .test_chat import ENDLESS, answer, ask, state_line, wait_for_more_words, wait_for_words

pytestmark = [pytest.mark.browser, pytest.mark.model]

MAKE = """
import sys
from django.contrib.auth.models import User
from inference.models import Chat, Generation
chat = Chat.objects.create(user=User.objects.get(username="grace"), title="Boats")
question = chat.add("user", "What is *a boat*?")
for text in ("It is **one**.", "It is **two**.", "It is **three**."):
    answer = chat.add("assistant", text, after=question)
    Generation.objects.create(message=answer, user=chat.user, state="finished", finish_reason="stop")
print(chat.pk)
"""


def stop_by_key(page: Page) -> None:
    page.keyboard.press("Escape")
    expect(state_line(page)).to_have_text("Stopped.")
    expect(page.locator("#send")).to_be_visible()


def version(message: Locator) -> Locator:
    return message.locator(".count [aria-hidden]")


def test_an_answer_is_stopped_continued_regenerated_and_paged_through_and_its_question_edited(
    sign_in, endless: Stack
):
    page = sign_in("grace", endless)
    ask(page, ENDLESS)
    wait_for_words(page, 5)
    stop_by_key(page)
    first = answer(page).text_content() or ""

    page.get_by_role("button", name="Continue").press("Enter")
    expect(page.locator("#stop")).to_be_visible()
    assert wait_for_more_words(page).startswith(first)
    page.reload()  # also in the middle of it
    assert wait_for_more_words(page).startswith(first)
    stop_by_key(page)
    longer = answer(page).text_content() or ""

    page.get_by_role("button", name="Regenerate").press("Enter")
    answers = page.locator(".message--assistant")
    expect(version(answers)).to_have_text("2 / 2")
    wait_for_words(page, 3)
    stop_by_key(page)
    page.get_by_role("button", name="Previous version").press("Enter")
    expect(version(answers)).to_have_text("1 / 2")
    expect(answer(page)).to_have_text(longer)
    page.reload()
    expect(answer(page)).to_have_text(longer)

    page.get_by_label("Message", exact=True).press("ArrowUp")
    field = page.get_by_label("Your message")
    expect(field).to_have_value(ENDLESS)
    field.fill("Count to a million.")
    field.press("Enter")
    expect(page.locator(".message--user .text")).to_have_text("Count to a million.")
    wait_for_words(page, 1)
    stop_by_key(page)
    question = page.locator(".message--user")
    expect(version(question)).to_have_text("2 / 2")
    question.get_by_role("button", name="Previous version").press("Enter")
    expect(page.locator(".message--user .text")).to_have_text(ENDLESS)
    expect(version(answers)).to_have_text("1 / 2")  # as it was last read
    expect(answer(page)).to_have_text(longer)


@pytest.fixture
def boats(stack: Stack) -> str:
    """The address of a chat whose only question has three answers, of which the last is read."""
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", MAKE]
    done = subprocess.run(command, cwd=ROOT, env=stack.environ(), capture_output=True, text=True, check=True)
    return f"/chats/{done.stdout.strip()}/"


def test_turns_are_copied_and_paged_through_and_edits_left_by_keyboard(sign_in, boats: str):
    page = sign_in("grace", permissions=["clipboard-read", "clipboard-write"])
    page.goto(boats)
    answers, question = page.locator(".message--assistant"), page.locator(".message--user")
    expect(answer(page)).to_have_text("It is three.")
    previous = answers.get_by_role("button", name="Previous version")
    previous.focus()
    page.keyboard.press("ArrowLeft")
    expect(answer(page)).to_have_text("It is two.")
    expect(answers.get_by_role("button", name="Previous version")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(answer(page)).to_have_text("It is one.")
    expect(previous).to_be_disabled()
    expect(answers.get_by_role("button", name="Next version")).to_be_focused()
    expect(page.get_by_role("status").filter(has_text="Version 1 of 3")).to_be_attached()

    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Copied")).to_be_attached()
    assert page.evaluate("navigator.clipboard.readText()") == "It is **one**."
    expect(answers.get_by_role("button", name="Continue")).to_be_hidden()  # it is complete

    box = page.get_by_label("Message", exact=True)
    box.press("ArrowUp")
    field = page.get_by_label("Your message")
    expect(field).to_be_focused()
    field.fill("changed")
    field.press("Escape")
    expect(field).to_be_hidden()
    expect(box).to_be_focused()
    expect(question.locator(".text")).to_have_text("What is *a boat*?")
    edit = question.get_by_role("button", name="Edit")
    edit.press("Enter")
    page.get_by_role("button", name="Cancel").press("Enter")
    expect(edit).to_be_focused()


def test_tools_are_seen_by_touch_and_are_large_enough_for_it(sign_in, boats: str):
    page = sign_in("grace", has_touch=True, is_mobile=True, viewport={"width": 390, "height": 800})
    page.goto(boats)
    expect(page.locator(".message--user").get_by_role("button", name="Edit")).to_have_css("opacity", "1")
    for button in page.locator(".tools button:visible").all():
        box = button.bounding_box()
        assert box
        assert min(box["width"], box["height"]) >= 24
