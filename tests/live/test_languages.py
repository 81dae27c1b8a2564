"""The pages in the language that a browser asks for, or that its person has chosen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.broker.play import picture
from tests.e2e.monitor_feed import Feed, slot
from tests.e2e.stack import PASSWORD, Stack

WORD = "async (text) => (await import('/static/dashboard/words.js')).gettext(text)"

pytestmark = [pytest.mark.browser, pytest.mark.model]


def test_a_german_browser_gets_german_pages_until_another_language_is_chosen(browser: Browser, stack: Stack):
    with browser.new_context(base_url=stack.url, service_workers="block", locale="de-AT") as context:
        page = context.new_page()
        page.goto("/accounts/login/")
        expect(page.locator("html")).to_have_attribute("lang", "de")
        page.get_by_label("Name").fill("ada")
        page.get_by_label("Passwort").fill(PASSWORD)
        page.get_by_role("button", name="Anmelden").click()
        expect(page.get_by_role("heading", name="Neuer Chat")).to_be_visible()
        feed = Feed(page)
        page.goto("/monitor/")  # words of the page, then of its scripts, and how these write numbers
        feed.show(picture(slots=[slot(0, "decode", "ada", tokens_per_second=12.34)]))
        expect(page.get_by_role("heading", name="Warteschlange")).to_be_visible()
        expect(page.get_by_role("table", name="Slots")).to_contain_text("12,3")
        page.goto("/admin/inference/generation/")  # whose own scripts are among ours
        assert page.evaluate(WORD, "writing") == "schreibt"
        page.goto("/account/")
        page.get_by_role("combobox", name="Sprache").select_option("English")
        page.get_by_role("button", name="Diese Sprache verwenden").click()
        expect(page.get_by_role("heading", name="Language")).to_be_visible()
        page.goto("/monitor/")
        feed.show(picture(slots=[slot(0, "decode", "ada", tokens_per_second=12.34)]))
        expect(page.get_by_role("heading", name="Queue")).to_be_visible()
        expect(page.get_by_role("table", name="Slots")).to_contain_text("12.3")
