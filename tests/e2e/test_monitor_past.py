"""What the monitor makes of the past that it is sent: charts, and the lanes of the slots."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.broker.play import picture

from .monitor_feed import Feed, a_past, slot

pytestmark = pytest.mark.browser


def chart(feed: Feed, title: str):
    return feed.page.get_by_role("img", name=re.compile(f"^{title}: "))


def test_the_charts_tell_their_figures_in_words_and_point_by_point(feed: Feed):
    feed.show(picture())
    now = 2 * int(time.time() // 2)
    points: list[list[Any]] = [
        [now - 6, 10, 0.5, 1, 0, None, 0.5],
        [now - 4, 20, 1.0, 3, 0, 1.5, 9],
        [now - 2, 30, 0.75, 2, 5, None, 2],
    ]
    feed.send(past=a_past(now, points))
    for title, words in {
        "Tokens per second": "30 now, on average 20, at most 30",
        "Pool in use": "75 % now, on average 75 %, at most 100 %",
        "Parked chats": "2 now, on average 2, at most 3",
        "Chats in the queue": "5 now, on average 1.7, at most 5",
        "Time to first token": "1.5 s last, on average 1.5 s, at most 1.5 s",
        "Longest silence": "2 s now, on average 3.8 s, at most 9 s",
    }.items():
        expect(chart(feed, title)).to_have_accessible_name(f"{title}: {words}")
    speed = feed.page.locator("figure").filter(has_text="Tokens per second")
    chart(feed, "Tokens per second").focus()
    feed.page.keyboard.press("ArrowLeft")
    expect(speed.locator(".chart-value")).to_have_text(re.compile(r"\d+:\d\d:\d\d.* · 20"))
    feed.page.keyboard.press("Tab")
    expect(speed.locator(".chart-value")).to_have_text("30")
    feed.send(
        past=a_past(now + 2, [[now - 2, 40, 0.75, 2, 5, None, 2], [now, 50, 0, 0, 0, None, 0]], whole=False)
    )
    expect(chart(feed, "Tokens per second")).to_have_accessible_name(re.compile("50 now, on average 30"))
    feed.page.get_by_text("As a table").click()
    rows = feed.page.get_by_role("table", name="The charts' figures").locator("tbody tr")
    expect(rows).to_have_count(10)
    expect(rows.first).to_contain_text("30")


def test_where_no_worker_lived_the_line_is_broken(feed: Feed):
    feed.show(picture())
    now = 2 * int(time.time() // 2)
    points = [[now - ago, 10, 0, 0, 0, None, 0] for ago in (100, 98, 96, 20, 18, 16)]
    feed.send(past=a_past(now, points))
    line = feed.page.locator("figure").filter(has_text="Tokens per second").locator(".chart-line")
    expect(chart(feed, "Tokens per second")).to_have_accessible_name(
        "Tokens per second: on average 10, at most 10"  # and nothing of now
    )
    expect(line).to_have_attribute("d", re.compile(r"^M[^M]+M[^M]+$"))


def test_a_lane_tells_who_was_in_the_slot_was_parked_and_came_back(feed: Feed):
    now = time.time()
    feed.show(picture(slots=[slot(0, "decode", "ada"), slot(1, "decode", "bob", since=now - 400)]))
    states = ["prefill", "decode", "parking", "parked", "resuming", "decode"]
    changes = [[now - 60 + 10 * i, 0, state, "ada", "a"] for i, state in enumerate(states)]
    feed.send(past=a_past(now, [], lanes={"w1": changes}))
    first = feed.page.get_by_role("img", name=re.compile("^Slot 0 in the last 5 minutes: "))
    expect(first).to_have_accessible_name(
        re.compile(
            "; ".join(
                rf"ada: {word} from [^;]+ for \d+ s"
                for word in ("reading", "writing", *states[2:5], "writing")
            )
        )
    )
    expect(first.locator("span")).to_have_count(6)
    expect(first).to_have_text("ada")  # once, where there is room
    second = feed.page.get_by_role("img", name=re.compile("^Slot 1 in the last 5 minutes: bob: writing"))
    expect(second.locator("span")).to_have_count(1)
    feed.send(past={"span": "5m", "whole": False, "lanes": {"w1": [[now, 0, "idle", None, None]]}})
    expect(first).to_have_accessible_name(re.compile(r"ada: writing from [^;]+ for (9|10) s$"))


def test_the_lanes_of_a_worker_that_died_end_there(feed: Feed):
    now = int(time.time())  # whole, so that differences are exact
    feed.show(picture(slots=[slot(0, "idle")]))  # it was started again, with fewer slots
    again = [
        [now - 100, 0, "decode", "ada", "a"],
        [now - 90, 3, "decode", "bob", "b"],
        [now - 60, None, "gone", None, None],
        [now - 50, 0, "idle", None, None],
    ]
    lanes = {"w0": [[now - 80, 1, "decode", "cy", "c"]], "w1": again, "w2": []}
    feed.send(past=a_past(now, [], lanes=lanes, seen={"w0": now - 30, "w1": now, "w2": now - 30}))
    for n, words in ((0, "ada: writing from [^;]+ for 40 s"), (3, "bob: writing from [^;]+ for 30 s")):
        lane = feed.page.get_by_role("img", name=re.compile(f"^Slot {n} in the last 5 minutes: {words}$"))
        expect(lane).to_be_visible()
    gone = feed.page.get_by_role("img", name=re.compile("^Slot 1 .*: cy: writing from [^;]+ for 50 s$"))
    expect(gone).to_be_visible()
    expect(feed.page.locator(".lanes-of h4")).to_have_text(["Worker w0", "Worker w1"])


def test_the_span_is_asked_for_and_remembered(feed: Feed):
    feed.show(picture())
    spans = feed.page.get_by_role("group", name="How far back")
    expect(spans.get_by_role("button", pressed=True)).to_have_text("5 min")
    spans.get_by_role("button", name="24 h").click()
    expect(spans.get_by_role("button", pressed=True)).to_have_text("24 h")
    while feed.told != [{"span": "5m"}, {"span": "24h"}]:
        feed.page.wait_for_timeout(10)
    feed.page.reload()
    feed.show(picture())
    expect(spans.get_by_role("button", pressed=True)).to_have_text("24 h")
    while feed.told[2:] != [{"span": "24h"}]:
        feed.page.wait_for_timeout(10)
