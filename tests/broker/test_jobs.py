from __future__ import annotations

from inference.broker import control, jobs
from inference.broker.connect import async_client
from inference.broker.control import Command, ControlReader
from inference.broker.jobs import JobReader
from inference.broker.keys import JOBS
from inference.messages import Job

from .play import job, new_id


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


async def test_a_finished_job_leaves_the_stream():
    reader, wanted = JobReader(new_id()), job()
    await jobs.submit(wanted)
    await taken(reader, wanted)
    before = await async_client().xlen(JOBS)
    await reader.ack([wanted.id, "unknown"])
    assert await async_client().xlen(JOBS) == before - 1


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


async def test_a_command_is_heard_once():
    first, second, reader = new_id(), new_id(), ControlReader()
    await control.cancel(first)
    await reader.read()
    control.cancel_sync(second)
    assert await reader.read() == [Command("cancel", second)]
