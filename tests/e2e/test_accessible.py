"""Every page by WCAG 2.2 AA, in both colour schemes and at two widths."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from .axe import assert_accessible

pytestmark = [pytest.mark.browser, pytest.mark.model]


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
