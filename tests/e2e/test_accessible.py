"""Every page by WCAG 2.2 AA, in both colour schemes and at two widths."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.broker.play import picture

from .api import FIRST
from .axe import assert_accessible
from .monitor_feed import Feed, slot
from .stack import Stack
from .test_chat import ENDLESS, NEARLY_ALL, PAUSED, ask, state_line, stop, wait_for_words

pytestmark = [pytest.mark.browser, pytest.mark.model]

STATES = ("decode", "prefill", "parking", "parked", "resuming")
LISTS = ("inference/generation", "inference/apikey", "auth/user")


def test_signing_in(browser, stack):
    with browser.new_context(base_url=stack.url, service_workers="block") as context:
        page = context.new_page()
        page.goto("/accounts/login/")
        assert_accessible(page)
        page.get_by_label("Name").fill("nobody")
        page.get_by_label("Password").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_be_visible()
        assert_accessible(page)


def test_the_empty_chat(sign_in):
    page = sign_in("grace")
    expect(page.get_by_label("Message", exact=True)).to_be_visible()
    assert_accessible(page)


def test_the_errors_and_the_page_without_a_server(sign_in):
    page = sign_in("grace", service_workers="allow")
    page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    for path in ("/nothing", "/monitor/", "/chats/", "/offline/"):
        page.goto(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert_accessible(page)
    page.context.set_offline(True)
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Berth can't be reached")
    assert_accessible(page)


def test_the_monitor_when_it_is_quiet_with_a_menu_and_when_it_is_stale(feed: Feed):
    page = feed.page
    feed.show(picture())
    expect(page.get_by_role("status")).to_have_text("Live")
    assert_accessible(page)
    expect(page.get_by_role("status")).to_have_text(re.compile("^Not live"))
    assert_accessible(page)
    page.reload()
    feed.show(picture(slots=[slot(i, state, "ada", cells=9) for i, state in enumerate(STATES)]))
    page.get_by_role("button", name="More: ada's chat").first.click()
    assert_accessible(page)


def test_a_paused_chat_the_monitor_and_the_admin_in_the_middle_of_a_park(sign_in, endless: Stack):
    chat, monitor = sign_in("grace", endless), sign_in("ada", endless)
    with endless.complete(NEARLY_ALL, -1, n_keep=-1, **FIRST) as other:
        other.wait_until_it_writes()
        ask(chat, ENDLESS)
        expect(state_line(chat)).to_have_text(PAUSED)
        assert_accessible(chat)
        monitor.goto("/monitor/")
        expect(monitor.get_by_role("table", name="Parked")).to_contain_text("grace")
        assert_accessible(monitor)
        monitor.get_by_role("button", name="Park and hold: chat").click()
        assert_accessible(monitor)
        monitor.goto("/admin/")
        expect(monitor.locator("#occupancy")).to_contain_text("grace")
        assert_accessible(monitor)
        for path in LISTS:
            monitor.goto(f"/admin/{path}/")
            assert_accessible(monitor)
        monitor.goto("/admin/inference/generation/")
        monitor.locator("#result_list tbody tr").first.get_by_role("link").first.click()
        expect(monitor.locator("#life")).to_contain_text("so far")
        assert_accessible(monitor)
    wait_for_words(chat, 3)
    stop(chat)
    expect(state_line(chat)).to_have_text("Stopped.")
    assert_accessible(chat)
