"""A client that lost its connection repeats its request with Last-Event-ID and gets exactly the rest."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from inference.broker import log
from inference.broker.connect import async_client
from inference.broker.control import Command, ControlReader
from inference.broker.hub import hub
from inference.broker.keys import CONTROL, JOBS, RECORDS, event_log, snapshot, stream
from inference.messages import Accepted, Finished, Job, Preempted, Resumed, Started, Token
from inference.models import ApiKey
from tests.broker.play import END, new_id, told

from .play import Client, Worker, fetch, working
from .test_generate import CHAT, PLAIN
from .test_siblings import TWO, accept

PATHS = {"/v1/chat/completions": CHAT, "/v1/completions": PLAIN, "/completion": PLAIN}
USAGE = {"stream_options": {"include_usage": True}}


def ids(client: Client) -> list[str]:
    return [line[4:] for line in client.body.decode().splitlines() if line.startswith("id: ")]


def after(client: Client, id: str) -> bytes:
    """What came after the event with this id."""
    return client.body.partition(f"id: {id}\n".encode())[2].partition(b"\n\n")[2]


async def answered(worker: Worker) -> tuple[Client, Job]:
    """A client that has read the whole of its answer, "a", and its job."""
    client = Client("POST", "/completion", PLAIN)
    job = await worker.takes()
    await worker.says(job, *told("a"))
    await client.ends()
    return client, job


def cancelled(n: int) -> Finished:
    return replace(END, stop_type="cancelled", text="", completion_tokens=n)


async def cut_off(worker: Worker, path: str, body: dict[str, Any], *texts: str) -> tuple[Client, Job]:
    """A client that left after these texts, and its job, which is cancelled."""
    client = Client("POST", path, body)
    job = await worker.takes()
    await worker.says(job, *told(*texts)[:-1])
    await client.hears(f'"{texts[-1]}"')
    await client.leaves()
    await worker.says(job, cancelled(len(texts)))
    return client, job


async def commands() -> set[bytes]:
    """The kinds of command that the workers were given."""
    found: Any = await async_client().xrange(CONTROL)
    return {fields[b"kind"] for _, fields in found}


@pytest.mark.parametrize("path", PATHS)
async def test_a_stream_that_is_over_goes_on_after_each_of_its_ids(path):
    body = PATHS[path] | USAGE
    async with working() as worker:
        whole = Client("POST", path, body)
        await worker.says(await worker.takes(), *told("a", "", "b"))
        await whole.ends()
        for id in ids(whole)[:-1]:
            rest = await fetch("POST", path, body, Last_Event_Id=id)
            assert (rest.status, rest.body) == (200, after(whole, id))
        assert (await fetch("POST", path, body, Last_Event_Id=ids(whole)[-1])).status == 204
    assert await commands() == {b"follow"}


async def test_it_goes_on_while_the_answer_is_being_written_also_while_parked():
    async with working() as worker:
        first = Client("POST", "/completion", PLAIN)
        job = await worker.takes()
        await worker.says(job, *told("a", "b")[:4], Preempted(0, "pressure", 5, 50))
        await first.hears(": preempted")
        second = Client("POST", "/completion", PLAIN, Last_Event_Id=ids(first)[0])
        await second.hears(": preempted")
        await worker.says(job, Resumed(0, 1.0), Token(3, "c"), END)
        await first.ends()
        await second.ends()
    assert second.body == after(first, ids(first)[0])


async def test_the_workers_are_asked_to_tell_who_comes_back():
    async with working() as worker:
        first = Client("POST", "/completion", PLAIN)
        job = await worker.takes()
        await worker.says(job, *told("a")[:3])
        await first.hears("data:")
        second = Client("POST", "/completion", PLAIN, Last_Event_Id=ids(first)[0])
        commands = ControlReader()
        while Command("follow", job.id, hub().group) not in await commands.read():
            pass
        await worker.says(job, Token(2, "b"), END)
        await second.ends()
        await first.ends()


async def test_the_connection_that_came_last_cancels_and_one_before_it_does_not():
    async with working() as worker:
        first = Client("POST", "/completion", PLAIN)
        job = await worker.takes()
        await worker.says(job, *told("a")[:3])
        await first.hears("data:")
        second = Client("POST", "/completion", PLAIN, Last_Event_Id=ids(first)[0])
        await worker.says(job, Token(2, "b"))
        await second.hears("b")
        await first.leaves()
        await worker.says(job, Token(3, "c"))
        await second.hears("c")
        assert await commands() == {b"follow"}
        await second.leaves()
        await worker.is_told_to_cancel(job)


@pytest.mark.parametrize("path", ["/completion", "/v1/completions"])
async def test_choices_go_on_each_after_what_has_come_of_it(path):
    body = TWO | USAGE
    async with working() as worker:
        whole = Client("POST", path, body)
        job = await worker.takes()
        await accept(worker, job)
        for index, text in ((1, "a"), (0, "b"), (1, "c"), (1, "d"), (0, "e")):
            await worker.says_of(job, index, Token(1, text))
            await whole.hears(f'"{text}"')
        first = Client("POST", path, body, Last_Event_Id=ids(whole)[2])
        await first.hears('"d"')
        await first.hears('"e"')
        for index in range(2):
            await worker.says_of(job, index, END)
        await whole.ends()
        await first.ends()
        last = await fetch("POST", path, body, Last_Event_Id=ids(whole)[-1])
    for text, times in (("a", 0), ("b", 0), ("c", 0), ("d", 1), ("e", 1)):
        assert first.body.count(f'"{text}"'.encode()) == times
    assert first.body.count(b"[DONE]") == whole.body.count(b"[DONE]")
    assert last.status == 204


async def test_without_notices_there_are_no_ids_and_a_stream_is_taken_up_all_the_same():
    async with working() as worker:
        whole = Client("POST", "/completion", PLAIN)
        await worker.says(await worker.takes(), *told("a", "b"))
        await whole.ends()
        plain = await fetch("POST", "/completion", PLAIN, Last_Event_Id=ids(whole)[0], X_Berth_Notices="off")
    assert b"id:" not in plain.body
    assert [chunk["content"] for chunk in plain.chunks] == ["b", ""]


async def test_what_is_no_id_is_a_400_and_asks_nothing_of_a_worker():
    async with working():
        for id in ("7", f"{new_id()}.0", "x" * 4000):
            refused = await fetch("POST", "/v1/chat/completions", CHAT, Last_Event_Id=id)
            assert refused.status == 400
            assert "Last-Event-ID" in refused.json["error"]["message"]
    assert await async_client().xlen(RECORDS) == 0


async def test_an_id_beyond_the_end_is_a_400():
    async with working() as worker:
        _, job = await answered(worker)
        refused = await fetch("POST", "/completion", PLAIN, Last_Event_Id=f"{job.id}.99")
    assert refused.status == 400


async def test_a_body_that_is_not_streamed_cannot_be_taken_up():
    refused = await fetch("POST", "/completion", PLAIN | {"stream": False}, Last_Event_Id=f"{new_id()}.1")
    assert refused.status == 400


async def test_an_unknown_stream_is_a_404():
    refused = await fetch("POST", "/completion", PLAIN, Last_Event_Id=f"{new_id()}.1")
    assert refused.status == 404


@pytest.mark.parametrize("gone", [stream, event_log])
async def test_a_stream_that_is_not_kept_any_more_is_a_404(gone):
    async with working() as worker:
        whole, job = await answered(worker)
        await async_client().delete(gone(job.id))
        refused = await fetch("POST", "/completion", PLAIN, Last_Event_Id=ids(whole)[0])
    assert refused.status == 404


@pytest.mark.parametrize(
    ("path", "body"),
    [("/completion", PLAIN | {"temperature": 0.1}), ("/completion", TWO), ("/v1/completions", PLAIN)],
)
async def test_the_stream_of_another_request_is_a_409(path, body):
    async with working() as worker:
        whole, _ = await answered(worker)
        refused = await fetch("POST", path, body, Last_Event_Id=ids(whole)[0])
    assert refused.status == 409


async def test_another_s_stream_is_a_404_as_one_that_never_was():
    _, mine = await asyncio.to_thread(ApiKey.objects.create_key, "mine")
    _, other = await asyncio.to_thread(ApiKey.objects.create_key, "other")
    async with working() as worker:
        whole = Client("POST", "/completion", PLAIN, Authorization=f"Bearer {mine}")
        await worker.says(await worker.takes(), *told("a"))
        await whole.ends()
        id = ids(whole)[0]
        same = await fetch("POST", "/completion", PLAIN, Last_Event_Id=id, X_Api_Key=mine)
        refused = await fetch("POST", "/completion", PLAIN, Last_Event_Id=id, X_Api_Key=other)
        unknown = await fetch("POST", "/completion", PLAIN, Last_Event_Id=f"{new_id()}.1", X_Api_Key=other)
    assert same.status == 200
    assert (refused.status, refused.json) == (404, unknown.json)


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


async def test_a_stream_is_kept_as_long_as_its_log():
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN)
        job = await worker.takes()
        await worker.says(job, Accepted(3, 1, 9), Started(0))
        ttl, of_log = [await async_client().ttl(key(job.id)) for key in (stream, event_log)]
        assert 0 < ttl <= of_log
        await client.leaves()
