"""The admin in a real browser on the real model: what is live there, and what an operator does."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from .stack import Stack
from .test_chat import STORY, ask, wait_for_the_end, wait_for_words

pytestmark = [pytest.mark.browser, pytest.mark.model]

LIST = "/admin/inference/generation/"


def newest(admin: Page):
    return admin.locator("#result_list tbody tr").first


def choose(admin: Page, action: str) -> None:
    newest(admin).get_by_role("checkbox").check()
    admin.get_by_label("Action:").select_option(label=action)
    admin.get_by_role("button", name="Go").click()


def open_newest(admin: Page, chat: Page) -> None:
    """The list, as soon as the chat's generation is in it and not over."""
    wait_for_words(chat, 2)
    admin.goto(LIST)
    expect(newest(admin)).to_contain_text("grace")


def test_the_badges_of_a_list_are_live_and_operators_act_from_it(sign_in):
    admin, chat = sign_in("ada"), sign_in("grace")
    ask(chat, STORY)
    open_newest(admin, chat)
    badge = newest(admin).locator(".berth-badge")
    expect(badge).to_have_text("Writing")

    choose(admin, "Park and hold")
    expect(admin.locator(".messagelist")).to_contain_text("parked and held")
    expect(badge).to_have_text("Held")
    choose(admin, "Release")
    expect(admin.locator(".messagelist")).to_contain_text("released")
    expect(badge).to_have_text("Writing")

    choose(admin, "Cancel")
    expect(admin.locator("#content-main")).to_contain_text("This ends 1 generation for good")
    admin.get_by_role("button", name="Cancel this generation").click()
    wait_for_the_end(chat)
    expect(badge).to_have_text("Cancelled")
    admin.goto("/admin/inference/operatoraction/")
    expect(admin.locator("#result_list tbody tr").first).to_contain_text("Cancel")


def test_a_badge_tells_the_end_without_a_reload(sign_in):
    admin, chat = sign_in("ada"), sign_in("grace")
    ask(chat, STORY)
    open_newest(admin, chat)
    expect(newest(admin).locator(".berth-badge")).to_have_text("Writing")
    for width in (1440, 390):
        admin.set_viewport_size({"width": width, "height": 800})
        assert admin.locator(".results").evaluate("list => list.scrollWidth <= list.clientWidth"), width
    admin.evaluate("window.sameVisit = true")
    chat.get_by_role("button", name="Stop").click()
    expect(newest(admin).locator(".berth-badge")).to_have_text("Cancelled")
    assert admin.evaluate("window.sameVisit")


def test_a_generations_page_draws_its_life_as_it_goes_on_and_then_its_end(sign_in):
    admin, chat = sign_in("ada"), sign_in("grace")
    refused: list[str] = []
    admin.on("console", lambda m: refused.append(m.text) if "Content Security" in m.text else None)
    ask(chat, STORY)
    open_newest(admin, chat)
    newest(admin).get_by_role("link").first.click()
    life = admin.locator("#life")
    expect(life).to_contain_text("so far")
    admin.get_by_role("button", name="Park and hold").click()
    expect(admin.locator(".messagelist")).to_contain_text("parked and held")
    row = life.get_by_role("row").filter(has_text="Parked")
    expect(row).to_contain_text("until now")
    expect(row).to_contain_text(re.compile(r"Hand\s*Swap\s*\d\s*\d+\s*\d+\.\d MiB"))
    expect(life.locator("rect.life-parked")).to_have_count(1)
    admin.context.set_offline(True)
    expect(life.get_by_role("status")).to_have_text("not live")
    admin.context.set_offline(False)
    expect(life.get_by_role("status")).to_have_text("")
    admin.get_by_role("button", name="Release").click()
    expect(row).not_to_contain_text("until now")
    chat.get_by_role("button", name="Stop").click()
    expect(life.get_by_role("row").last).to_contain_text("Cancelled")
    expect(admin.locator(".operate")).to_have_count(0)
    assert refused == []


def test_a_list_is_downloaded_as_csv(sign_in, stack: Stack):
    admin = sign_in("ada")
    admin.goto(LIST)
    with admin.expect_download() as download:
        admin.get_by_role("link", name="Export as CSV").click()
    assert download.value.suggested_filename.startswith("generations-")
    assert download.value.path().read_text("utf-8-sig").startswith("id,state,api,model,")
