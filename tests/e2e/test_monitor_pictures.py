"""What the monitor makes of the pictures of this moment that it is sent."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import expect

from tests.broker.play import picture

from .monitor_feed import Feed, parked, queued, slot

pytestmark = pytest.mark.browser

MIB = 2**20


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
    held = {
        "preempt_ram_bytes": int(3.4 * MIB),
        "preempt_ram_kept_bytes": 300 * 1024,
        "cache_ram_bytes": 12 * MIB,
    }
    feed.show(picture(counters=picture()["counters"] | held))
    expect(feed.page.locator(".ram")).to_have_text(
        "Host RAM: 3.4 MiB of parked chats. "
        "Host RAM: 300 KiB kept of earlier parks, so that the next copies less. "
        "Host RAM: 12 MiB of computed prompts, so that a chat's next turn is read sooner."
    )


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
