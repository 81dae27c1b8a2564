"""The monitor with the keyboard alone: everything is reached in the order in which it is read, and whoever
opened something is back where they were when it closes."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.broker.play import picture

from .monitor_feed import Feed, a_past, parked, queued, slot

pytestmark = pytest.mark.browser

# What can be pressed or looked into, in the order of the document.
STOPS = "a[href], button, input:not([type=hidden]), summary, [tabindex='0']"
NAMES = f"""() => [...document.querySelectorAll("{STOPS}")].filter((e) => e.checkVisibility())
  .map((e) => e.ariaLabel ?? e.textContent.trim())"""
FOCUSED = "(document.activeElement.ariaLabel ?? document.activeElement.textContent.trim())"


def busy(priority: int = 0, cells: int = 50):
    """ada writes, bob is parked, cy waits, di is held."""
    return picture(
        pool={"cells": 200, "used": cells},
        slots=[slot(0, "decode", "ada", cells=cells, priority=priority, generation="a" * 32)],
        parked=[parked("bob", 9), parked("di", 40, held=True)],
        queue=[queued("cy", 3)],
    )


def more(page: Page, who: str = "ada"):
    return page.get_by_role("button", name=f"More: {who}'s chat")


def test_the_tab_key_reaches_everything_in_the_order_of_reading(feed: Feed):
    page = feed.page
    feed.show(busy())
    feed.send(past=a_past(0, [[0, 1, 0, 0, 0, None, 0]]))
    expect(more(page, "cy")).to_be_visible()
    page.locator("body").evaluate("(body) => { body.tabIndex = -1; body.focus(); }")
    seen = []
    for _ in page.evaluate(NAMES):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUSED))
    assert seen == page.evaluate(NAMES)
    assert {"Park and hold: ada's chat", "More: bob's chat", "Release: di's chat"} < set(seen)


def test_a_menu_and_a_dialog_give_the_focus_back(feed: Feed):
    page = feed.page
    feed.show(busy())
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Park and hold: ada's chat").focus()
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Park and hold: ada's chat")).to_be_focused()

    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("menuitem").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_be_hidden()
    expect(more(page)).to_be_focused()

    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(dialog).to_contain_text("Give ada's chat low priority?")
    feed.show(busy(priority=-1))  # its row is drawn anew meanwhile
    expect(page.get_by_role("table", name="Slots")).to_contain_text("high")
    page.keyboard.press("Escape")
    expect(more(page)).to_be_focused()


def test_a_button_keeps_the_focus_when_its_chat_moves(feed: Feed):
    page = feed.page
    feed.show(busy())
    more(page).focus()
    moved = busy()
    moved["slots"] = [slot(0, "idle")]
    moved["parked"] += [parked("ada", 0, generation="a" * 32)]
    feed.show(moved)
    expect(page.get_by_role("table", name="Parked, in").locator("tbody tr").nth(1)).to_contain_text("ada")
    expect(more(page)).to_be_focused()


def test_what_an_action_did_is_said_and_the_focus_stays(feed: Feed):
    page = feed.page
    page.route("**/monitor/park", lambda route: route.fulfill(json={}))
    feed.show(busy())
    page.get_by_role("button", name="Park and hold: ada's chat").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#outcome")).to_contain_text("Held: ada's chat.")
    expect(page.get_by_role("button", name="Park and hold: ada's chat")).to_be_focused()
