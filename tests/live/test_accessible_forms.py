"""What people fill in, by WCAG 2.2 AA: signing up, the account, the chat's dialogs, the admin's forms."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.axe import assert_accessible
from tests.e2e.stack import Stack
from tests.e2e.tale import in_django

pytestmark = [pytest.mark.browser, pytest.mark.model]

ONE_WORD = """
from django.contrib.auth.models import User
from inference.models import Chat
Chat.objects.create(user=User.objects.get(username="eve"), title=200 * "W").add("user", "Boats?")
"""
IS_WITHIN = """() => {
  const list = document.querySelector(".results");
  return !list || list.scrollWidth <= list.clientWidth;
}"""


@pytest.fixture
def anybody(browser: Browser, stack: Stack) -> Iterator[Page]:
    """Who is not signed in."""
    with browser.new_context(base_url=stack.url, service_workers="block") as context:
        yield context.new_page()


def test_signing_up_and_a_forgotten_password(anybody: Page):
    page = anybody
    page.goto("/accounts/sign-up/")
    assert_accessible(page)
    page.get_by_label("Name").fill("a")
    page.get_by_role("button", name="Make the account").click()
    expect(page.get_by_label("Name")).to_have_accessible_description(re.compile("letters and digits"))
    assert_accessible(page)
    for path in ("/accounts/reset/", "/accounts/reset/asked/", "/accounts/reset/MQ/used-up/"):
        page.goto(path)
        assert_accessible(page)


def test_an_account_and_what_is_done_with_it(sign_in, stack: Stack):
    page = sign_in("grace")
    page.goto("/account/")
    page.get_by_label("What it is for").fill("a laptop with a long name")
    page.get_by_role("button", name="Create a key").click()
    expect(page.get_by_role("heading", name="The key")).to_be_visible()
    assert_accessible(page)
    page.goto("/account/")
    assert_accessible(page)
    page.get_by_role("link", name="Revoke a laptop").click()
    assert_accessible(page)
    page.get_by_role("button", name="Revoke it").click()
    expect(page.get_by_role("status")).to_contain_text("is revoked")
    page.get_by_role("button", name="Create a key").click()
    expect(page.get_by_text("Say what the key is for.")).to_be_visible()
    page.get_by_role("button", name="Account of grace").click()
    assert_accessible(page)
    for path in ("email", "sessions", "delete", "password"):
        page.goto(f"/account/{path}/")
        assert_accessible(page)
    page.get_by_role("button", name="Change the password").click()
    expect(page.get_by_label("Your password")).to_be_focused()
    assert_accessible(page)
    admin = sign_in("ada")  # while there is a key, even one that is revoked, the API asks for one
    admin.goto("/admin/inference/apikey/")
    admin.get_by_role("link", name="a laptop with a long name").click()
    admin.get_by_role("link", name="Delete").click()
    admin.get_by_role("button", name="Yes, I’m sure").click()
    expect(admin.locator(".messagelist")).to_contain_text("deleted successfully")


def test_the_dialogs_of_a_chat_and_what_is_shared_of_it(sign_in, anybody: Page):
    page = sign_in("grace")
    page.get_by_label("Message", exact=True).fill("Hello")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/chats/\d+/$"))
    expect(page.get_by_role("button", name="Send")).to_be_visible()

    page.get_by_role("button", name="Settings").click()
    settings = page.get_by_role("dialog", name="Settings of this chat")
    settings.get_by_label("Temperature").fill("9")
    settings.get_by_role("button", name="Save").click()
    expect(settings.get_by_role("alert")).to_be_visible()
    assert_accessible(page)
    page.keyboard.press("Escape")

    page.keyboard.press("Control+k")
    page.keyboard.type("hello")
    expect(page.locator("#search-hits li").first).to_be_visible()
    assert_accessible(page)
    page.get_by_role("dialog").get_by_role("button", name="Close").click()

    page.keyboard.press("Control+/")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    assert_accessible(page)
    page.keyboard.press("Escape")

    page.get_by_role("button", name="Share").click()
    share = page.get_by_role("dialog", name="Share this chat")
    share.get_by_role("button", name="Make a link").click()
    link = share.get_by_label("Link of").input_value()
    assert_accessible(page)
    page.keyboard.press("Escape")
    anybody.goto(link)
    expect(anybody.locator("article")).to_have_count(2)
    assert_accessible(anybody)

    page.get_by_role("button", name="Menu of this chat").click()
    assert_accessible(page)  # at another width the menu closes
    page.get_by_role("button", name="Menu of this chat").click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    assert_accessible(page)


def test_the_admins_forms(sign_in, stack: Stack):
    page = sign_in("ada")
    page.goto("/admin/inference/apikey/add/")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Please correct the error")).to_be_visible()
    owner = page.locator(".select2-selection")
    expect(owner).to_have_accessible_name(re.compile("^Owner:"))
    assert_accessible(page)
    page.get_by_label("Name").fill("laptop")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Copy it now")).to_be_visible()
    assert_accessible(page)
    page.get_by_role("link", name="Its settings").click()
    expect(owner).to_have_accessible_name(re.compile("^Owner:"))
    for picker in (".clock-icon", ".date-icon"):
        page.locator(picker).click()
        assert_accessible(page)
        page.keyboard.press("Escape")
    owner.click()
    page.locator(".select2-results__option").first.wait_for()
    assert_accessible(page)
    page.keyboard.press("Escape")
    page.get_by_role("link", name="History").click()
    assert_accessible(page)
    page.go_back()
    page.get_by_role("link", name="Delete").click()
    assert_accessible(page)
    page.get_by_role("button", name="Yes, I’m sure").click()
    expect(page.locator(".messagelist")).to_contain_text("deleted successfully")
    for path in ("password_change/", "auth/", "auth/user/add/", "auth/group/add/"):
        page.goto(f"/admin/{path}")
        assert_accessible(page)
    page.goto("/admin/auth/user/")
    page.locator("#result_list").get_by_role("link", name="grace").click()
    assert_accessible(page)
    page.get_by_role("link", name="Reset password").click()
    assert_accessible(page)
    in_django(stack, ONE_WORD)
    for name in ("chat", "message", "preemption", "operatoraction"):
        page.goto(f"/admin/inference/{name}/")
        assert_accessible(page)
        assert page.evaluate(IS_WITHIN), name  # with all of its columns
