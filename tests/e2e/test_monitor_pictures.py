"""What the monitor makes of the pictures that it is sent. They are made up, since a state that lasts for
milliseconds cannot be waited for."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.broker.play import picture

pytestmark = pytest.mark.browser

MIB = 2**20


def slot(id: int, state: str, owner: str | None = None, **more: Any) -> dict[str, Any]:
    usual: dict[str, Any] = picture()["slots"][0]
    generation = None if owner is None else f"{id:032x}"
    return usual | {"id": id, "state": state, "owner": owner, "generation": generation, **more}


def parked(owner: str, ago: float, **more: Any) -> dict[str, Any]:
    usual = {"generation": owner, "owner": owner, "priority": 0, "held": False, "slot": 0, "cells": 40}
    usual |= {"bytes": 0, "tokens": 40, "method": "swap", "cause": "pressure", "parks": 1}
    return usual | {"since": time.time() - ago, **more}


def queued(owner: str, ago: float, priority: int = 0) -> dict[str, Any]:
    since = time.time() - ago
    return {"generation": owner, "owner": owner, "priority": priority, "since": since, "n_prompt_tokens": 12}


class Feed:
    """The monitor's WebSocket, played by the test."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.told: list[Any] = []  # what the page has sent
        self._socket: WebSocketRoute | None = None
        page.route_web_socket("**/ws/monitor/", self._open)

    def _open(self, socket: WebSocketRoute) -> None:
        self._socket = socket
        socket.on_message(lambda text: self.told.append(json.loads(text)))

    def send(self, **message: Any) -> None:
        while self._socket is None:
            self.page.wait_for_timeout(10)
        self._socket.send(json.dumps(message))

    def show(self, *workers: dict[str, Any]) -> None:
        self.send(workers=workers, now=time.time())


@pytest.fixture
def feed(sign_in) -> Feed:
    page = sign_in("ada")
    feed = Feed(page)
    page.goto("/monitor/")
    return feed


def headline(feed: Feed):
    return feed.page.locator("#headline")


def test_each_slot_tells_its_state_whose_chat_it_is_and_what_it_holds(feed: Feed):
    feed.show(
        picture(
            pool={"cells": 200, "used": 110},
            slots=[
                slot(0, "idle"),
                slot(1, "prefill", "ada", cells=30, n_prompt_tokens=60, n_prompt_processed=30),
                slot(2, "decode", "bob", cells=50, tokens_per_second=12.34, parks=2, priority=-1),
                slot(3, "parking", "cy", cells=20),
                slot(4, "parked", "di", parks=1),
                slot(5, "resuming", "ed", cells=10, parks=1),
                slot(6, "parked", "flo", held=True, parks=1),
            ],
        )
    )
    rows = feed.page.get_by_role("table", name="Slots").locator("tbody tr")
    for i, words in enumerate(
        [
            ["idle", "–"],
            ["reading 50 %", "ada", "30", "15 %"],
            ["writing", "bob high", "50", "25 %", "12.3", "2"],
            ["parking", "cy", "20", "10 %"],
            ["parked", "di", "0"],
            ["resuming", "ed", "10", "5 %"],
            ["held", "flo"],
        ]
    ):
        expect(rows.nth(i)).to_have_text(re.compile(".*".join(map(re.escape, words))))
    expect(feed.page.get_by_role("progressbar")).to_have_attribute("value", "30")
    expect(feed.page.locator(".legend li")).to_have_text(["ada 15 %", "bob 25 %", "cy 10 %", "ed 5 %"])
    bar = feed.page.get_by_role("img", name=re.compile("slot 2 holds 50 for bob"))
    expect(bar).to_be_visible()


def test_a_share_is_the_same_wherever_it_stands(feed: Feed):
    ada = slot(0, "decode", "ada", cells=409)  # 79.9 %
    feed.show(picture(pool={"cells": 512, "used": 409}, slots=[ada]))
    expect(feed.page.locator(".pool-line")).to_contain_text("80 % full")
    expect(feed.page.locator(".legend li")).to_have_text(["ada 80 %"])
    expect(feed.page.get_by_role("table", name="Slots").locator("tbody tr")).to_contain_text("80 %")
    for used, words in ((512, "100 % full"), (511, "99 % full"), (1, "1 % full"), (0, "0 % full")):
        feed.show(picture(pool={"cells": 512, "used": used}))
        expect(feed.page.locator(".pool-line")).to_contain_text(words)


def test_what_is_in_host_ram_is_told_where_something_is(feed: Feed):
    feed.show(picture())
    expect(feed.page.locator(".legend")).to_be_attached()
    expect(feed.page.locator(".ram")).to_be_hidden()
    held = {"preempt_ram_bytes": int(3.4 * MIB), "preempt_ram_kept_bytes": 300 * 1024}
    feed.show(picture(counters=picture()["counters"] | held))
    expect(feed.page.locator(".ram")).to_have_text(
        "Host RAM: 3.4 MiB of parked chats. "
        "Host RAM: 300 KiB kept of earlier parks, so that the next copies less."
    )


def test_cells_that_are_no_slots_are_a_part_of_the_bar(feed: Feed):
    feed.show(picture(pool={"cells": 100, "used": 60}, slots=[slot(0, "decode", "ada", cells=20)]))
    expect(feed.page.locator(".legend li")).to_have_text(["ada 20 %", "cached prefixes 40 %"])


def test_the_parked_are_told_in_order_with_how_they_are_kept_and_what_the_head_waits_for(feed: Feed):
    line = [
        parked("ada", 65, bytes=int(3.4 * MIB)),
        parked("bob", 4, cause="rotation", method="recompute", tokens=1240, cells=0),
        parked("cy", 7270, held=True, bytes=300 * 1024),
    ]
    head = {"generation": "ada", "owner": "ada", "needs": 180, "free": 40, "slots": 1}
    feed.show(picture(parked=line, head=head))
    table = feed.page.get_by_role("table", name="Parked, in order of return")
    expect(table.locator("tbody tr")).to_have_text(
        [
            re.compile(r"adaPressure.*swap, 3\.4 MiB.*1 min 0\d s"),
            re.compile(r"bobRotation.*recompute, 1,240 tokens.*\d s"),
        ]
    )
    held = feed.page.get_by_role("table", name="Held by an operator")
    expect(held.locator("tbody tr")).to_have_text(re.compile(r"cy.*swap, 300 KiB.*2 h 01 min"))
    expect(feed.page.get_by_text("Next is ada's chat, for 180 cells: 40 are free.")).to_be_visible()
    expect(headline(feed)).to_have_text(
        re.compile(
            r"Waits are long\. 2 chats are parked; the longest has waited 1 min 0\d s for 180 cells\. "
            r"1 chat is held by an operator\."
        )
    )


def test_the_queue_is_told_by_priority(feed: Feed):
    line = [queued("ada", 3, -1), queued("bob", 9), queued("cy", 2), queued("di", 1, 7)]
    head = {"generation": "bob", "owner": "bob", "needs": 20, "free": 0, "slots": 0}
    feed.show(picture(queue=line, head=head))
    expect(feed.page.get_by_role("heading", name="Queue, 4: 1 high, 2 normal, 1 priority 7")).to_be_visible()
    rows = feed.page.get_by_role("table", name="Queue").locator("tbody tr")
    expect(rows).to_have_text([re.compile(name) for name in ("ada high", "bob", "cy", "di priority 7")])
    expect(feed.page.get_by_text("Next is bob's chat, for a slot.")).to_be_visible()
    expect(headline(feed)).to_have_text(
        re.compile(r"Healthy\. 4 chats are in the queue; the longest has waited \d+ s for a slot\.")
    )


def test_the_headline_says_what_is_wrong(feed: Feed):
    expect(headline(feed)).to_have_attribute("data-level", "unknown")
    feed.show(picture())
    expect(headline(feed)).to_have_text("Healthy. Nobody waits.")
    feed.show(picture(at=time.time() - 4))
    expect(headline(feed)).to_have_text(re.compile("wrong. Worker w1 has not been heard of for [45] s"))
    stuck = picture(taken_at=time.time() - 50, slots=[slot(0, "decode", "ada")])
    feed.show(stuck)
    expect(headline(feed)).to_have_text(re.compile("wrong. Worker w1 has made no step for 5\\d s"))
    expect(headline(feed)).to_have_attribute("data-level", "bad")
    feed.show(picture(taken_at=time.time() - 50))  # it is idle
    expect(headline(feed)).to_have_text("Healthy. Nobody waits.")
    feed.show(picture(state="draining"))
    expect(headline(feed)).to_have_text(re.compile("Draining.*No worker takes new chats"))
    feed.show(picture(), picture("w2", "draining"))
    expect(headline(feed)).to_have_text("Healthy. Nobody waits. 1 of 2 workers is draining.")
    feed.show()
    expect(headline(feed)).to_have_text("Down. No worker is running: chats wait until one is.")


def test_a_line_that_is_silent_is_not_taken_for_live(feed: Feed):
    feed.show(picture(queue=[queued("ada", 1)]))
    expect(feed.page.get_by_role("status")).to_have_text("Live")
    expect(feed.page.get_by_role("status")).to_have_text(re.compile(r"Not live since .*; reconnecting"))
    expect(headline(feed)).to_have_text(re.compile("Not known. What is below is of "))
    for part in ("#workers", "#past"):
        expect(feed.page.locator(part)).to_have_class("stale")


def test_a_lost_network_is_told_at_once_and_so_is_its_return(feed: Feed):
    status = feed.page.get_by_role("status")
    feed.show(picture())
    expect(status).to_have_text("Live")
    first = feed._socket
    feed.page.context.set_offline(True)
    expect(status).to_have_text(re.compile("^Not live since"))
    feed.page.context.set_offline(False)
    while feed._socket is first:
        feed.page.wait_for_timeout(10)
    feed.show(picture())
    expect(status).to_have_text("Live")


def a_past(now: float, points: list[list[Any]], **more: Any) -> dict[str, Any]:
    usual = {"span": "5m", "whole": True, "lanes": {}, "step": 2, "length": 150, "now": now, "points": points}
    return usual | more


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
