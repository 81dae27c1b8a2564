"""What Redis has lost is asked for again by the process whose client waits for it."""

from __future__ import annotations

from typing import Any

import pytest

from inference import stream
from inference.broker.connect import async_client
from inference.broker.hub import hub
from inference.broker.keys import JOBS
from inference.consumers import Completion, Completions
from inference.messages import Accepted, Event, Job, Started
from tests.broker.play import show, soon, told

from .play import Client, Worker, working

PLAIN = {"prompt": "hi"}


class Quick(Completion):
    look_every = 0.01


class QuickSiblings(Completions):
    look_every = 0.01


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "AGAIN_AFTER", 0.02)


def ask(**fields: Any) -> Client:
    return Client("POST", "/completion", {**PLAIN, **fields}, Quick.as_asgi())


async def is_heard(worker: Worker, job: Job, *events: Event, index: int = 0) -> None:
    """The worker says this of a generation of the job, and whoever follows that hears it."""
    async with hub().follow(job.generations()[index], fresh=True) as ear:
        await worker.says_of(job, index, *events)
        for _ in events:
            assert await ear.next(soon())


async def lose() -> Worker:
    """Redis comes back without its data, and a worker with nothing to do."""
    await async_client().flushall()
    await show()
    return Worker()


@pytest.mark.parametrize("is_stream", [True, False])
async def test_a_request_that_is_lost_in_the_queue_is_submitted_again(is_stream: bool):
    async with working() as worker:
        client = ask(stream=is_stream)
        while not await async_client().delete(JOBS):
            pass
        await worker.says(await worker.takes(), *told("x"))
        await client.ends()
    assert client.status == 200
    assert "x" in client.body.decode()


@pytest.mark.parametrize("told_before", [told()[:1], told()[:2]], ids=["queued", "in a slot"])
async def test_a_stream_whose_worker_and_data_are_lost_begins_again_unless_text_has_come(told_before):
    async with working() as worker:
        client = ask(stream=True)
        first = await worker.takes()
        await is_heard(worker, first, *told_before)
        second = await lose()
        again = await second.takes()
        await second.says(again, Accepted(3, 2, 9), Started(1), *told("a", "b")[2:])
        await client.ends()
    assert again == first
    assert [chunk["content"] for chunk in client.chunks if not chunk["stop"]] == ["a", "b"]
    assert client.chunks[-1]["generation_settings"]["seed"] == 2


async def test_an_answer_in_one_piece_begins_again_also_in_the_middle():
    async with working() as worker:
        client = ask(stream=False)
        await is_heard(worker, await worker.takes(), *told("lost")[:3])
        second = await lose()
        await second.says(await second.takes(), *told("whole"))
        await client.ends()
    assert client.json["content"] == "whole"


async def test_a_stream_of_which_text_has_come_fails_and_says_what_to_do(monkeypatch):
    monkeypatch.setattr(stream, "LOST_AFTER", 0.05)
    async with working() as worker:
        client = ask(stream=True)
        await worker.says(await worker.takes(), *told("x")[:3])
        await client.hears("x")
        await lose()
        await client.ends()
        assert not await async_client().exists(JOBS)
    assert "lost when Redis was restarted" in client.chunks[-1]["error"]["message"]


@pytest.mark.parametrize("is_stream", [True, False])
async def test_siblings_begin_again_together(is_stream: bool):
    async with working() as worker:
        body = {**PLAIN, "n": 2, "stream": is_stream}
        client = Client("POST", "/v1/completions", body, QuickSiblings.as_asgi())
        first = await worker.takes()
        await is_heard(worker, first, Accepted(3, 1, 9))
        await is_heard(worker, first, Accepted(3, 1, 9), Started(0), index=1)
        second = await lose()
        again = await second.takes()
        assert again == first
        for index, text in enumerate("ab"):
            await second.says_of(again, index, *told(text))
        await client.ends()
    assert client.status == 200
    chunks = client.chunks if is_stream else [client.json]
    texts = {c["index"]: c["text"] for chunk in chunks for c in chunk["choices"] if c["text"]}
    assert texts == {0: "a", 1: "b"}
