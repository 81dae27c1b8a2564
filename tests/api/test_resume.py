"""A client that lost its connection repeats its request with Last-Event-ID and gets exactly the rest."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from inference.broker.connect import async_client
from inference.broker.control import Command, ControlReader
from inference.broker.hub import hub
from inference.broker.keys import CONTROL, RECORDS, event_log, stream
from inference.messages import Accepted, Job, Preempted, Resumed, Started, Token
from inference.models import ApiKey
from tests.broker.play import END, new_id, told

from .comebacks import ids
from .play import Client, Worker, fetch, working
from .test_generate import CHAT, PLAIN
from .test_siblings import TWO, accept

PATHS = {"/v1/chat/completions": CHAT, "/v1/completions": PLAIN, "/completion": PLAIN}
USAGE = {"stream_options": {"include_usage": True}}


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


async def test_a_stream_is_kept_as_long_as_its_log():
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN)
        job = await worker.takes()
        await worker.says(job, Accepted(3, 1, 9), Started(0))
        ttl, of_log = [await async_client().ttl(key(job.id)) for key in (stream, event_log)]
        assert 0 < ttl <= of_log
        await client.leaves()
