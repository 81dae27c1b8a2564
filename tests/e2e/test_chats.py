"""Chats as a whole in a real browser: found, named, set, shared, exported, deleted and had back."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from .api import until
from .stack import ROOT, Stack, signed_in
from .test_chat import answer, ask, wait_for_the_end

pytestmark = [pytest.mark.browser, pytest.mark.model]

SignIn = Callable[..., Page]
LISTED = 50  # chats of a page of the list
MAKE = f"""
from django.contrib.auth.models import User
from inference.models import Chat, Generation
for name in ("ada", "grace"):
    user = User.objects.get(username=name)
    Chat.objects.filter(user=user).delete()
    for i in range({LISTED + 3}):
        chat = Chat.objects.create(user=user, title=f"Boat {{i}}")
        question = chat.add("user", f"Tell me of boat {{i}}")
        if i == 0:
            chat.add("assistant", "Strike the topsail.")  # another version is read
        answer = chat.add("assistant", f"**Boat {{i}}** has a halyard.", after=question)
        Generation.objects.create(message=answer, user=user, state="finished")
    for i in range(20):
        chat.add("user", f"And then? {{i}}")
        answer = chat.add("assistant", "Sail on. " * 40)
        Generation.objects.create(message=answer, user=user, state="finished")
    print(chat.pk)
"""


@pytest.fixture(scope="module")
def chats(stack: Stack) -> list[int]:
    """Ada and Grace have more chats than are listed at once; the newest of each, a long one."""
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", MAKE]
    done = subprocess.run(command, cwd=ROOT, env=stack.environ(), capture_output=True, text=True, check=True)
    return [int(pk) for pk in done.stdout.split()]


@pytest.fixture
def newest(chats: list[int]) -> int:
    """Grace's."""
    return chats[1]


def listed(page: Page):
    return page.locator("#chat-list li")


def head(page: Page):
    return page.locator(".bar").get_by_role("heading")


def focused(page: Page):
    return page.locator(":focus")


def test_a_chat_is_named_deleted_and_had_back_with_keys_alone(sign_in: SignIn, chats: list[int]):
    page, newest = sign_in("ada"), chats[0]
    page.goto(f"/chats/{newest}/")
    expect(listed(page)).to_have_count(LISTED)
    page.get_by_role("button", name="Show more").focus()
    page.keyboard.press("Enter")
    expect(listed(page)).to_have_count(LISTED + 3)
    expect(focused(page)).to_have_text("Boat 2")
    expect(page.get_by_role("button", name="Show more")).to_be_hidden()

    listed(page).first.get_by_role("link").focus()
    page.keyboard.press("ArrowDown")
    expect(focused(page)).to_have_text("Boat 51")
    page.keyboard.press("Tab")  # to its menu
    page.keyboard.press("Enter")
    expect(focused(page)).to_have_text("Rename")
    page.keyboard.press("ArrowUp")
    expect(focused(page)).to_have_text("Delete")
    page.keyboard.press("Escape")
    expect(focused(page)).to_have_accessible_name("Menu of Boat 51")
    page.keyboard.press("Enter")
    expect(focused(page)).to_have_text("Rename")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Name of the chat")).to_be_focused()
    page.keyboard.type("  Ropes and sails. ")
    page.keyboard.press("Enter")
    expect(listed(page).nth(1).get_by_role("link")).to_have_text("Ropes and sails.")
    expect(focused(page)).to_have_accessible_name("Menu of Ropes and sails.")
    page.keyboard.press("F2")
    page.keyboard.type("Not this")
    page.keyboard.press("Escape")
    expect(listed(page).nth(1).get_by_role("link")).to_have_text("Ropes and sails.")

    page.keyboard.press("Delete")
    expect(page.get_by_role("status").filter(has_text="Deleted “Ropes and sails”.")).to_be_visible()
    expect(focused(page)).to_have_text("Undo")
    expect(listed(page)).to_have_count(LISTED + 2)
    page.keyboard.press("Enter")
    expect(listed(page).nth(1).get_by_role("link")).to_have_text("Ropes and sails.")
    expect(focused(page)).to_have_text("Ropes and sails.")

    page.goto(f"/chats/{newest}/")
    page.get_by_label("Message", exact=True).focus()
    page.keyboard.press("F2")
    page.keyboard.type("The newest")
    page.keyboard.press("Enter")
    expect(head(page)).to_have_text("The newest")
    expect(page).to_have_title(re.compile("The newest"))
    page.keyboard.press("Control+Shift+Backspace")
    expect(page).to_have_url(re.compile(r"[^/]/$"))
    expect(listed(page).first).not_to_have_text(re.compile("The newest"))
    assert page.request.get(f"/chats/{newest}/").status == 404
    expect(focused(page)).to_have_text("Undo")
    page.keyboard.press("Control+z")
    expect(page).to_have_url(re.compile(rf"/chats/{newest}/$"))
    expect(head(page)).to_have_text("The newest")


def test_a_search_leads_to_the_message(sign_in: SignIn, newest: int):
    page = sign_in("grace")
    page.keyboard.press("Control+k")
    page.keyboard.type("BOAT 7")
    hits = page.locator("#search-hits li")
    expect(page.locator("#search-said")).to_have_text("3 hits")
    expect(hits.locator("mark")).to_have_text(["Boat 7", "Boat 7", "boat 7"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(head(page)).to_have_text("Boat 7")

    page.goto(f"/chats/{newest}/")
    page.get_by_role("button", name="Search").click()
    page.keyboard.type(f"boat {LISTED + 2}** has a")
    expect(page.locator("#search-said")).to_have_text("1 hit")
    page.keyboard.press("Enter")
    found = page.locator(".message--assistant").first
    expect(page.locator("#search")).to_be_hidden()
    expect(found).to_be_in_viewport()
    expect(found).to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.type("topsail")
    page.keyboard.press("Enter")  # at once: it waits for the hits
    expect(head(page)).to_have_text("Boat 0")
    expect(page.locator(".message--assistant").last).to_have_text(re.compile("Strike the topsail."))
    expect(page.locator(".message--assistant").last).to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.type("no boat is called so")
    expect(page.locator("#search-said")).to_have_text("Nothing found.")
    page.keyboard.press("Escape")  # once, also where a field could be cleared
    expect(page.locator("#search")).to_be_hidden()


def test_drafts_stay_with_their_chat_and_their_person(sign_in: SignIn, newest: int):
    page = sign_in("grace")
    text = page.get_by_label("Message", exact=True)
    text.fill("For a new chat")
    page.goto(f"/chats/{newest}/")
    expect(text).to_have_value("")
    text.fill("For this one")
    page.reload()
    expect(text).to_have_value("For this one")
    page.keyboard.press("Control+Shift+o")
    expect(text).to_have_value("For a new chat")
    page.get_by_role("button", name="Account of grace").click()
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Name").wait_for()
    assert page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('berth:draft:'))") == []


def test_a_new_chat_has_the_settings_that_were_chosen_before_its_first_message(sign_in: SignIn):
    page = sign_in("grace")
    dialog = page.get_by_role("dialog", name="Settings of this chat")
    page.keyboard.press("Control+Shift+Comma")
    dialog.get_by_label("Temperature").fill("2.5")
    dialog.get_by_label("Longest answer").fill("3")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_have_text("The temperature is a number from 0 to 2.")
    expect(dialog.get_by_label("Temperature")).to_be_focused()
    dialog.get_by_label("Temperature").fill("0,5")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    page.get_by_label("Message", exact=True).fill("Hello")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/chats/\d+/$"))
    wait_for_the_end(page)
    page.get_by_role("button", name="Settings").click()
    expect(dialog.get_by_label("Temperature")).to_have_value("0.5")
    expect(dialog.get_by_label("Longest answer")).to_have_value("3")
    expect(dialog.get_by_label("Seed")).to_have_value("")
    page.reload()
    expect(page.get_by_label("Message", exact=True)).to_have_value("")  # the draft was sent


def test_a_shared_chat_is_read_without_an_account_until_its_link_is_taken_back(
    sign_in: SignIn, browser: Browser, newest: int
):
    page = sign_in("grace")
    page.goto(f"/chats/{newest}/")
    page.keyboard.press("Control+Shift+l")
    dialog = page.get_by_role("dialog", name="Share this chat")
    dialog.get_by_role("button", name="Make a link").click()
    link = dialog.get_by_label("Link of").input_value()
    with browser.new_context(service_workers="block") as anybody:
        reader = anybody.new_page()
        reader.goto(link)
        expect(reader.locator(".message--assistant strong").first).to_have_text(f"Boat {LISTED + 2}")
        expect(reader.locator("article")).to_have_count(42)
        expect(reader.get_by_text("grace")).to_have_count(0)
        dialog.get_by_role("button", name="Take back").click()
        expect(dialog.get_by_role("status")).to_have_text("Taken back. The link opens nothing any more.")
        expect(dialog.get_by_label("Link of")).to_have_count(0)
        reply = reader.reload()
        assert reply
        assert reply.status == 404


def test_a_chat_is_exported_as_markdown_and_as_json(sign_in: SignIn, newest: int, tmp_path: Path):
    page = sign_in("grace")
    page.goto(f"/chats/{newest}/")
    for name in ("Markdown", "JSON"):
        page.get_by_role("button", name="Menu of this chat").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=f"Export as {name}").click()
        download.value.save_as(tmp_path / download.value.suggested_filename)
    assert (tmp_path / f"Boat {LISTED + 2}.md").read_text().startswith(f"# Boat {LISTED + 2}\n\n## You\n")
    assert len(json.loads((tmp_path / f"Boat {LISTED + 2}.json").read_text())["messages"]) == 42


def test_the_keys_are_listed_and_the_single_one_can_be_switched_off(sign_in: SignIn, newest: int):
    page = sign_in("grace")
    page.goto(f"/chats/{newest}/")
    help = page.get_by_role("dialog", name="Keyboard shortcuts")
    page.locator("#scroll").focus()
    page.keyboard.press("?")
    expect(help).to_be_visible()
    help.get_by_label("Open this list with ? alone").uncheck()
    page.keyboard.press("Escape")
    expect(page.locator("#scroll")).to_be_focused()
    page.keyboard.press("?")
    expect(help).to_be_hidden()
    page.keyboard.press("Control+/")
    expect(help).to_be_visible()


def test_the_model_names_a_chat_after_its_first_answer(browser: Browser, tmp_path: Path):
    stack = Stack(tmp_path, **{"ctx-size": 1024, "parallel": 2, "temp": 0, "n-predict": 8})
    stack.flags.append("--chat-titles")
    question = "Tell me a long story about a brave knight and a dragon."
    stack.start()
    try:
        with signed_in(browser, stack, "grace") as page:
            ask(page, question)
            expect(page).to_have_url(re.compile(r"/chats/\d+/$"))

            def title() -> str:
                page.reload()
                return head(page).text_content() or ""

            until(lambda: title() != question)
            assert re.search("knight|dragon", title())
            assert len(title()) <= 60
            expect(page.locator(".message")).to_have_count(2)  # it is no part of the chat
            expect(answer(page)).not_to_be_empty()
    finally:
        stack.stop()
