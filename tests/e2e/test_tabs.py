"""One person, several pages: they agree without a reload, and one that was cut off finds its way back."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Error, Page, expect

from inference.messages import Token

from .api import until
from .stack import Stack
from .tale import STOPPED, Tale
from .test_chat import ENDLESS, answer, ask, state_line, wait_for_more_words, wait_for_words

pytestmark = [pytest.mark.browser, pytest.mark.model]

GOING = re.compile("waiting|reading|writing|paused")
POST = """async ([path, fields]) => {
  const { post } = await import("/static/dashboard/post.js");
  await post(location.pathname + path, fields);
}"""


def number(page: Page) -> str:
    """Of the chat that it shows."""
    expect(page).to_have_url(re.compile(r"/chats/\d+/$"))
    return str(page.url.split("/")[-2])


def in_list(page: Page, chat: str):
    return page.locator(f"#chat-list [data-chat='{chat}']")


def badge(page: Page, chat: str):
    return in_list(page, chat).locator(".chat-state")


def test_what_is_done_on_one_device_is_seen_on_the_other_without_a_reload(sign_in, endless: Stack):
    laptop = sign_in("grace", endless)
    phone = sign_in("grace", endless, viewport={"width": 390, "height": 700})
    phone.get_by_role("button", name="Chats").click()
    ask(laptop, ENDLESS)
    chat = number(laptop)
    expect(badge(phone, chat)).to_have_text(GOING)
    in_list(phone, chat).get_by_role("link").click()
    wait_for_words(phone, 3)
    for page in (laptop, phone):
        page.evaluate("window.opened = 'once'")
    draft = phone.get_by_label("Message", exact=True)
    draft.fill("And then")

    beside = laptop.context.new_page()
    beside.goto("/")
    ask(beside, ENDLESS)
    other = number(beside)
    for page in (beside, laptop, phone):
        expect(badge(page, other)).to_have_text(GOING)
        expect(badge(page, chat)).to_have_text(GOING)
    wait_for_more_words(laptop)
    beside.get_by_role("button", name="Stop").click()
    expect(badge(phone, other)).to_have_text("")

    phone.get_by_role("button", name="Stop").click()
    expect(state_line(laptop)).to_have_text("Stopped.")
    until(lambda: answer(laptop).text_content() == answer(phone).text_content())  # both have drawn all
    ask(laptop, "Once more, please.")
    expect(phone.locator(".message--user .text").last).to_have_text("Once more, please.")
    expect(phone.locator(".message--assistant")).to_have_count(2)
    wait_for_words(phone, 0)

    laptop.evaluate(POST, ["title", {"title": "Numbers"}])
    for page in (laptop, phone):
        expect(page.locator("h1")).to_have_text("Numbers")
        expect(page).to_have_title(re.compile("Numbers · Berth"))
        expect(in_list(page, chat)).to_contain_text("Numbers")
        expect(in_list(page, chat).locator("a")).not_to_have_attribute("target", "_blank")
    laptop.evaluate(POST, ["delete", {}])
    deleted = phone.get_by_text("This chat has been deleted.")
    expect(deleted).to_be_visible()
    expect(phone.locator("#send")).to_be_disabled()
    with pytest.raises(Error, match="This chat is not there any more"):
        phone.evaluate(POST, ["title", {"title": "Too late"}])
    expect(in_list(beside, chat)).to_have_count(0)
    laptop.evaluate(POST, ["restore", {}])
    expect(deleted).to_be_hidden()
    expect(phone.locator("#send")).to_be_enabled()
    expect(in_list(beside, chat)).to_have_count(1)
    expect(draft).to_have_value("And then")
    for page in (laptop, phone):
        assert page.evaluate("window.opened") == "once"


def test_a_page_without_network_goes_on_once_it_is_back(sign_in, endless: Stack):
    page = sign_in("grace", endless)
    ask(page, ENDLESS)
    before = wait_for_words(page, 5)
    page.evaluate("window.opened = 'once'")
    page.context.set_offline(True)
    page.route("**/generations/*/events*", lambda route: route.abort())
    page.evaluate("dispatchEvent(new Event('online'))")  # the old connection is given up
    expect(state_line(page)).to_have_text("Connection lost. Reconnecting…")
    page.unroute("**/generations/*/events*")
    page.context.set_offline(False)
    after = wait_for_more_words(page)
    assert after.startswith(before)
    expect(state_line(page)).to_have_text("Writing…")
    assert page.evaluate("window.opened") == "once"
    page.get_by_role("button", name="Stop").click()


def test_a_page_is_not_disturbed_where_nothing_has_changed(sign_in, endless: Stack):
    """What is selected, focused and open in a message stays, also when another message has come to be."""
    tale = Tale(endless)
    tale.tell(Token(1, "Boats float."), STOPPED)
    page = sign_in("grace", endless)
    page.goto(tale.path)
    question = page.locator(".message--user")
    question.get_by_role("button", name="Edit").click()
    field = question.get_by_role("textbox")
    field.fill("Tell me of trains.")
    page.evaluate("for (const turn of document.querySelectorAll('.message')) turn.dataset.kept = ''")
    with page.expect_response("**" + tale.path):
        page.evaluate("document.dispatchEvent(new CustomEvent('chat:changed'))")
    expect(page.locator(".message[data-kept]")).to_have_count(2)
    expect(field).to_have_value("Tell me of trains.")
    expect(field).to_be_focused()
    tale.forget()
