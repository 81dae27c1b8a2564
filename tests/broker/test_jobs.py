from __future__ import annotations

import asyncio
import time

import pytest

from inference.broker import control, jobs
from inference.broker.connect import async_client
from inference.broker.control import Command, ControlReader
from inference.broker.job_reader import JobReader
from inference.broker.keys import JOBS, QUEUED
from inference.broker.publisher import Publisher
from inference.messages import Job

from .play import job, new_id, numbered, told


async def taken(reader: JobReader, wanted: Job) -> None:
    """Read until this job comes; others are left from other tests."""
    found: list[Job] = []
    while wanted not in found:
        found = await reader.read()
        await reader.ack([other.id for other in found if other != wanted])


async def test_a_job_is_taken_by_one_worker_alone():
    one, two, wanted, last = JobReader(new_id()), JobReader(new_id()), job(), job()
    await jobs.submit(wanted)
    await taken(one, wanted)
    await jobs.submit(last)
    assert await two.read() == [last]


async def test_a_finished_job_leaves_the_stream_and_so_does_all_that_it_generates():
    reader, wanted = JobReader(new_id()), Job(new_id(), "generate", {"prompts": ["a", "b"], "n": 2}, "")
    await jobs.submit(wanted)
    await taken(reader, wanted)
    ids = wanted.generations()
    assert jobs.waiting_sync(ids) == set(ids)
    before = await async_client().xlen(JOBS)
    await reader.ack([wanted.id, "unknown"])
    assert await async_client().xlen(JOBS) == before - 1
    assert await async_client().hmget(QUEUED, ids) == [None] * 4


async def test_a_job_that_cannot_be_read_is_dropped_and_the_next_is_taken():
    reader, wanted = JobReader(new_id()), job()
    await async_client().xadd(JOBS, {"job": "{"})
    await jobs.submit(wanted)
    await taken(reader, wanted)


async def test_every_worker_hears_a_cancel_even_one_that_starts_later():
    id = new_id()
    await control.cancel(id)
    for reader in (ControlReader(), ControlReader()):
        assert Command("cancel", id) in await reader.read()


@pytest.mark.parametrize("fast_s", [3600, -3600])
async def test_a_worker_whose_clock_is_wrong_hears_all_the_same(fast_s, monkeypatch):
    wrong = time.time() + fast_s
    monkeypatch.setattr(time, "time", lambda: wrong)
    id = new_id()
    await control.cancel(id)
    assert Command("cancel", id) in await ControlReader().read()
    assert id in await control.cancelled()


async def test_a_command_is_heard_once():
    first, second, reader = new_id(), new_id(), ControlReader()
    await control.cancel(first)
    await reader.read()
    control.cancel_sync(second)
    assert await reader.read() == [Command("cancel", second)]


async def test_a_lost_job_that_another_job_names_is_submitted_again():
    lost = job()
    calls = [{"id": lost.id, "type": "function"}]
    told_of = [{"role": "assistant", "content": "", "tool_calls": calls}]
    other = await jobs.submit(Job(new_id(), "apply_template", {"messages": told_of}, ""))
    assert await jobs.submit_again(lost) not in (None, other)


async def test_a_lost_job_that_many_submit_again_is_in_the_queue_once():
    lost = job()
    (entry,) = set(await asyncio.gather(*(jobs.submit_again(lost) for _ in range(9))))
    assert entry is not None
    assert not jobs.submit_again_sync(lost)
    await async_client().xdel(JOBS, entry)
    assert jobs.submit_again_sync(lost)
    assert jobs.waiting_sync([new_id(), lost.id]) == {lost.id}
    await taken(JobReader(new_id()), lost)


async def test_what_the_queue_or_a_log_knows_of_is_not_submitted_again():
    queued, logged = job(), job()
    entry = await jobs.submit(queued)
    assert await jobs.submit_again(queued) == entry
    await Publisher("w1").publish(numbered(logged.id, told("x"))[:1])
    assert await jobs.submit_again(logged) is None
    assert not jobs.submit_again_sync(logged)
    assert jobs.waiting_sync([logged.id, queued.id]) == {queued.id}
