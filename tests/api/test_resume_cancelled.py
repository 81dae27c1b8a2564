"""What was cancelled when its client left goes on when the client comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inference.broker import log
from inference.broker.connect import async_client
from inference.broker.keys import JOBS, RECORDS, snapshot
from inference.messages import Preempted, Resumed, Token
from tests.broker.play import END, told

from .comebacks import cancelled, cut_off, ids
from .play import Client, fetch, working
from .test_generate import CHAT, PLAIN
from .test_siblings import TWO, accept


async def test_what_was_cancelled_when_its_client_left_goes_on_under_another_id():
    async with working() as worker:
        first, job = await cut_off(worker, "/v1/chat/completions", CHAT, "a", "b")
        second = Client("POST", "/v1/chat/completions", CHAT, Last_Event_Id=ids(first)[-2])
        again = await worker.takes()
        assert again.goes_on
        assert again.body == job.body
        assert [event for _, event in await log.read(again.id)] == told("a", "b")[:4]
        worker.said(again, 4)
        await worker.says(again, Preempted(0, "client", 0, 0), Resumed(0, 0.1), Token(3, "c"))
        await second.hears('"c"')
        assert [id.partition(".")[0] for id in ids(second)] == [again.id] * 2
        # Who comes back with an old id is sent on, also to one that was cancelled again.
        await second.leaves()
        await worker.says(again, cancelled(3))
        third = Client("POST", "/v1/chat/completions", CHAT, Last_Event_Id=ids(first)[-2])
        once_more = await worker.takes()
        worker.said(once_more, 7)
        await worker.says(once_more, Token(4, "d"), END)
        await third.ends()
    said = [choice["delta"].get("content") for chunk in third.chunks for choice in chunk["choices"]]
    assert said == ["b", "c", "d", None]
    assert {chunk["id"] for chunk in third.chunks} == {f"chatcmpl-{job.id}"}


@pytest.mark.parametrize("several", [False, True])
async def test_who_is_still_there_is_told_of_a_cancellation_and_can_go_on(several):
    body = TWO if several else PLAIN
    async with working() as worker:
        client = Client("POST", "/completion", body)
        job = await worker.takes()
        await accept(worker, job, 1 + several)
        await worker.says(job, Token(1, "a"))
        await client.hears('"a"')
        for index in range(1 + several):
            await worker.says_of(job, index, cancelled(1))
        await client.ends()
        assert "goes on" in client.chunks[-1]["error"]["message"]
        assert len(ids(client)) == 1
        again = Client("POST", "/completion", body, Last_Event_Id=ids(client)[0])
        assert (await worker.takes()).goes_on
        await again.leaves()


async def test_of_several_choices_those_that_were_over_stay_so():
    async with working() as worker:
        first = Client("POST", "/completion", TWO)
        job = await worker.takes()
        await accept(worker, job)
        await worker.says_of(job, 0, Token(1, "a"), END)
        await worker.says_of(job, 1, Token(1, "b"))
        await first.hears('"b"')
        await first.leaves()
        await worker.says_of(job, 1, cancelled(1))
        second = Client("POST", "/completion", TWO, Last_Event_Id=ids(first)[-1])
        again = await worker.takes()
        one, two = again.generations()
        assert (await log.last(one), await log.last(two)) == (3, 2)
        worker.said(again, 3, 2)
        await worker.says_of(again, 1, Token(2, "c"), END)
        await second.ends()
    assert [(chunk["index"], chunk["content"]) for chunk in second.chunks] == [(1, "c"), (1, "")]
    found: Any = await async_client().xrange(RECORDS)
    records = [json.loads(fields[b"r"]) for _, fields in found]
    begun = [record["id"] for record in records if record["kind"] == "submitted"]
    assert begun == [*job.generations(), two]  # the other is over, and has its row


async def test_two_that_come_back_at_once_read_one_generation():
    async with working() as worker:
        first, _ = await cut_off(worker, "/completion", PLAIN, "a")
        both = [Client("POST", "/completion", PLAIN, Last_Event_Id=ids(first)[0]) for _ in range(2)]
        again = await worker.takes()
        worker.said(again, 3)
        await worker.says(again, Token(2, "b"), END)
        for client in both:
            await client.ends()
            assert [chunk["content"] for chunk in client.chunks] == ["b", ""]
    assert await async_client().xlen(JOBS) == 2


async def test_without_a_worker_what_was_cancelled_stays_so_and_can_go_on_later():
    async with working() as worker:
        first, _ = await cut_off(worker, "/completion", PLAIN, "a")
    await async_client().delete(snapshot("w1"))
    assert (await fetch("POST", "/completion", PLAIN, Last_Event_Id=ids(first)[0])).status == 503
    async with working() as worker:
        second = Client("POST", "/completion", PLAIN, Last_Event_Id=ids(first)[0])
        again = await worker.takes()
        worker.said(again, 3)
        await worker.says(again, END)
        await second.ends()
