"""The monitor and the admin's panel in a real browser, on the real model."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from .api import FIRST
from .stack import Stack
from .test_chat import ENDLESS, NEARLY_ALL, PAUSED, ask, state_line, stop, wait_for_words

pytestmark = [pytest.mark.browser, pytest.mark.model]


def test_a_parked_chat_is_shown_live_with_its_wait_and_the_pool(sign_in, endless: Stack):
    monitor, chat = sign_in("ada", endless), sign_in("grace", endless)
    monitor.goto("/monitor/")
    expect(monitor.get_by_role("status")).to_have_text("Live")
    expect(monitor.get_by_text("Nobody is parked.")).to_be_visible()
    with endless.complete(NEARLY_ALL, -1, n_keep=-1, **FIRST) as other:
        other.wait_until_it_writes()
        ask(chat, ENDLESS)
        expect(state_line(chat)).to_have_text(PAUSED)

        parked = monitor.get_by_role("table", name="Parked, in order of return")
        expect(parked.get_by_role("row").filter(has_text="grace")).to_contain_text(re.compile(r"\d+ s"))
        bar = monitor.get_by_role("img", name=re.compile(r"of 512 cells in use: slot \d holds \d{3}"))
        expect(bar).to_be_visible()
        expect(monitor.get_by_role("table", name="Slots")).to_contain_text("writing")
        long = r"(Healthy|Waits are long)\. 1 chat is parked; it has waited (\d+ min )?\d+ s for \d+ cells\."
        expect(monitor.locator("#headline")).to_have_text(re.compile(long))
        expect(
            monitor.get_by_text(re.compile(r"Next is grace's chat, for \d+ cells: \d+ are free\."))
        ).to_be_visible()
        expect(parked).to_contain_text(re.compile(r"recompute, \d+ tokens|swap, [\d.]+ \w+"))
        assert not {"fox", "119,"} & set((monitor.locator("main").text_content() or "").split())

    expect(monitor.get_by_text("Nobody is parked.")).to_be_visible()
    expect(monitor.locator("#headline")).to_have_text("Healthy. Nobody waits.")
    expect(monitor.locator(".legend")).to_contain_text(re.compile(r"grace \d+ %"))
    stop(chat)


def test_it_says_when_it_is_not_live_and_comes_back(sign_in):
    page = sign_in("ada")
    page.route_web_socket("**/ws/monitor/", lambda ws: ws.close(code=1012))
    page.goto("/monitor/")
    expect(page.get_by_role("status")).to_have_text(re.compile(r"Not live since .*; reconnecting"))
    expect(page.locator("#workers")).to_have_class("stale")
    page.route_web_socket("**/ws/monitor/", lambda ws: ws.connect_to_server())
    expect(page.get_by_role("status")).to_have_text("Live")
    expect(page.locator("#workers")).not_to_have_class("stale")

    page.route_web_socket("**/ws/monitor/", lambda ws: ws.close(code=1012))
    page.goto("/admin/")
    panel = page.locator("#occupancy")
    expect(panel.get_by_role("status")).to_have_text(re.compile(r"Not live since .*; reconnecting"))
    expect(panel).to_have_class(re.compile("is-stale"))
    page.route_web_socket("**/ws/monitor/", lambda ws: ws.connect_to_server())
    expect(panel.get_by_role("status")).to_have_text("live")
    expect(panel).not_to_have_class(re.compile("is-stale"))


def test_it_is_for_staff_alone(sign_in):
    page = sign_in("grace")
    expect(page.get_by_role("link", name="Monitor")).to_have_count(0)
    reply = page.goto("/monitor/")
    assert reply is not None
    assert reply.status == 403
    expect(page.get_by_role("heading", name="Not for this account")).to_be_visible()


def test_the_admins_index_shows_the_same_live_picture(sign_in, endless: Stack):
    admin, chat = sign_in("ada", endless), sign_in("grace", endless)
    admin.goto("/admin/")
    ask(chat, ENDLESS)
    wait_for_words(chat, 1)
    expect(admin.locator("body")).to_contain_text("grace")
    stop(chat)
