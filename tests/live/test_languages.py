"""The pages in the language that a browser asks for, or that its person has chosen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.stack import PASSWORD, Stack

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
        page.goto("/monitor/")  # words of the page, then of its scripts
        expect(page.get_by_role("heading", name="Warteschlange")).to_be_visible()
        page.goto("/account/")
        page.get_by_role("combobox", name="Sprache").select_option("English")
        page.get_by_role("button", name="Diese Sprache verwenden").click()
        expect(page.get_by_role("heading", name="Language")).to_be_visible()
        page.goto("/monitor/")
        expect(page.get_by_role("heading", name="Queue")).to_be_visible()
