"""A person's life with an account, in a real browser: from making it to deleting it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.e2e.api import Reply
from tests.e2e.stack import Stack

pytestmark = [pytest.mark.browser, pytest.mark.model]

NAME, FIRST, SECOND = "margarethe", "some quiet words", "many loud words"


@pytest.fixture
def opened(browser: Browser, stack: Stack) -> Iterator[BrowserContext]:
    """Of somebody who has no account yet."""
    with browser.new_context(base_url=stack.url, service_workers="block") as context:
        yield context


def fill(page: Page, button: str, **fields: str) -> None:
    """Fill in a form, labels with _ for spaces, and send it."""
    for label, text in fields.items():
        page.get_by_label(label.replace("_", " "), exact=True).fill(text)
    page.get_by_role("button", name=button).click()


def sign_in(page: Page, password: str) -> None:
    page.goto("/accounts/login/")
    fill(page, "Sign in", Name=NAME, Password=password)


def menu(page: Page, entry: str) -> None:
    page.get_by_role("button", name=f"Account of {NAME}").press("Enter")
    page.keyboard.press("Tab")
    for _ in range(2):
        if page.evaluate("document.activeElement.textContent") != entry:
            page.keyboard.press("Tab")
    page.keyboard.press("Enter")


def status_with(stack: Stack, key: str) -> int:
    body = {"prompt": "x", "n_predict": 1}
    with Reply(stack.port, "/completion", body, headers={"Authorization": f"Bearer {key}"}) as reply:
        reply.read()
        return reply.status


def test_from_sign_up_to_the_end_of_the_account(opened: BrowserContext, browser: Browser, stack: Stack):
    page = opened.new_page()
    page.goto("/accounts/login/")
    page.get_by_role("link", name="Make an account").click()

    # what is not right is said at its field, and the cursor is there
    fill(page, "Make the account", Name=NAME, Password="password1", The_same_again="password1")
    expect(page.get_by_label("Password", exact=True)).to_be_focused()
    expect(page.get_by_label("Password", exact=True)).to_have_accessible_description(
        re.compile("several words")
    )
    fill(page, "Make the account", Password=FIRST, The_same_again=FIRST)
    expect(page.get_by_label("Message", exact=True)).to_be_visible()

    # an answer of the chat is counted
    page.wait_for_load_state()  # the keys are the script's
    page.get_by_label("Message", exact=True).fill("Hello")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/chats/\d+/$"))
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    menu(page, "Your account")
    expect(page).to_have_url(re.compile("/account/$"))
    in_browser = page.get_by_role("row", name="In the browser").get_by_role("cell").first
    expect(in_browser).to_have_text("1")

    # a key is shown once, works, and works no more when it is revoked
    fill(page, "Create a key", What_it_is_for="laptop")
    expect(page.get_by_role("heading", name="The key “laptop”")).to_be_visible()
    key = page.locator(".key").inner_text()
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("#announced")).to_have_text("Copied")
    assert status_with(stack, key) == 200
    page.get_by_role("link", name="Back to your account").click()
    expect(page.get_by_text(key)).to_have_count(0)
    page.get_by_role("link", name="Revoke laptop").click()
    page.get_by_role("button", name="Revoke it").click()
    expect(page.get_by_role("status")).to_have_text("The key “laptop” is revoked.")
    assert status_with(stack, key) == 401

    # all of one's data, as a file
    with page.expect_download() as download:
        page.get_by_role("link", name="Export all of it").click()
    found = json.loads(download.value.path().read_text())
    assert found["chats"][0]["messages"][0]["content"] == "Hello"

    # another password ends the session of another browser, and not this one
    with browser.new_context(base_url=stack.url, service_workers="block") as elsewhere:
        other = elsewhere.new_page()
        sign_in(other, FIRST)
        expect(other.get_by_label("Message", exact=True)).to_be_visible()
        page.get_by_role("link", name="Change password").click()
        fill(page, "Change the password", Your_password=FIRST, New_password=SECOND, The_same_again=SECOND)
        expect(page.get_by_role("status")).to_contain_text("you are signed out everywhere else")
        other.reload()
        expect(other.get_by_role("heading", name="Sign in")).to_be_visible()
        sign_in(other, FIRST)
        expect(other.get_by_role("alert")).to_contain_text("don't match an account")

        # signing out, by the menu and the keyboard
        menu(page, "Sign out")
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        sign_in(page, SECOND)
        expect(page.get_by_label("Message", exact=True)).to_be_visible()

        # the account goes, with all that is in it
        page.goto("/account/delete/")
        expect(page.get_by_role("listitem").first).to_contain_text("1 chat with all of its messages")
        fill(page, "Delete my account", Your_password="wrong")
        expect(page.get_by_label("Your password")).to_have_accessible_description(
            re.compile("not your password")
        )
        fill(page, "Delete my account", Your_password=SECOND)
        expect(page.get_by_role("heading", name="Your account is deleted")).to_be_visible()
        sign_in(page, SECOND)
        expect(page.get_by_role("alert")).to_contain_text("don't match an account")


def test_the_account_fits_on_a_phone(browser: Browser, stack: Stack):
    with browser.new_context(
        base_url=stack.url, service_workers="block", viewport={"width": 390, "height": 844}
    ) as context:
        page = context.new_page()
        page.goto("/accounts/login/")
        fill(page, "Sign in", Name="ada", Password="correct-horse-battery")
        expect(page.get_by_label("Message", exact=True)).to_be_visible()
        for path in ("/", "/account/", "/account/password/", "/account/delete/", "/monitor/"):
            page.goto(path)
            button = page.get_by_role("button", name="Account of ada")
            box = button.bounding_box()
            assert box
            assert box["x"] + box["width"] <= 390 - 8, path
            assert box["height"] >= 24
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        page.get_by_text("As a table").click()  # it scrolls by itself
        expect(page.get_by_role("table", name="The charts' figures")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
