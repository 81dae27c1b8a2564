"""One generation is run by one worker at a time: who lost its lease writes nothing more."""

from __future__ import annotations

from typing import Any

import pytest

from inference.broker import job_reader, jobs, log
from inference.broker.connect import async_client
from inference.broker.job_reader import Claimed, JobReader
from inference.broker.keys import INCARNATIONS, JOBS, LEASE, RECORDS, WORKER_GROUP
from inference.broker.lease import Fenced, Lease
from inference.broker.publisher import Publisher
from inference.messages import Job, Token

from .play import job, new_id, numbered, told


class Worker:
    """A worker's end of the broker."""

    def __init__(self, lease: Lease) -> None:
        self.lease, self.reader = lease, JobReader(lease.token)
        self.publisher = Publisher(lease.worker, lease)

    @classmethod
    async def start(cls, name: str = "") -> Worker:
        return cls(await Lease.acquire(name or new_id()))

    async def take(self) -> Job:
        """Submit a job, and take it; others are left from other tests."""
        wanted = job()
        await jobs.submit(wanted)
        while True:
            found = await self.reader.read()
            await self.reader.ack([other.id for other in found if other != wanted])
            if wanted in found:
                return wanted

    async def claim(self) -> list[Claimed]:
        return await self.reader.claim(self.lease)


async def silence(worker: Worker) -> None:
    """Its lease runs out."""
    await async_client().delete(LEASE + worker.lease.token)


async def lasted(worker: Worker) -> None:
    """It has held its lease for long."""
    await async_client().set(LEASE + worker.lease.token, 0, ex=60)


async def test_a_successor_of_the_same_name_takes_over_at_once_and_fences():
    name = new_id()
    before = await Worker.start(name)
    lost = await before.take()
    await before.publisher.publish(numbered(lost.id, told("a", "b"))[:3])
    after = await Worker.start(name)
    assert int(after.lease.token) > int(before.lease.token)
    assert Claimed(lost, "") in await after.claim()
    with pytest.raises(Fenced):
        await before.publisher.publish([(lost.id, 4, Token(1, "b"))])
    with pytest.raises(Fenced):
        await before.lease.renew()
    assert len(await log.read(lost.id)) == 3
    await after.publisher.publish([(lost.id, 4, Token(1, "mine"))])
    assert (await log.read(lost.id))[3:] == [(4, Token(1, "mine"))]
    await after.reader.ack([lost.id])
    assert not [found for found in await (await Worker.start(name)).claim() if found.job == lost]


async def test_what_a_fenced_worker_publishes_reaches_neither_log_nor_records_nor_followers():
    name = new_id()
    before = await Worker.start(name)
    lost = await before.take()
    before.publisher.route(lost.id, "group")
    await Worker.start(name)
    records = await async_client().xlen(RECORDS)
    with pytest.raises(Fenced):
        await before.publisher.publish(numbered(lost.id, told("a")))
    assert await log.read(lost.id) == []
    assert await async_client().xlen(RECORDS) == records


async def test_another_worker_takes_over_when_the_lease_has_run_out():
    one, two = await Worker.start(), await Worker.start()
    lost = await one.take()
    await lasted(two)
    assert not [found for found in await two.claim() if found.job == lost]
    await silence(one)
    assert Claimed(lost, "") in await two.claim()
    with pytest.raises(Fenced):
        await one.lease.renew()


async def test_a_lease_that_ran_out_and_that_nobody_took_is_renewed():
    one = await Worker.start()
    lost = await one.take()
    await silence(one)
    assert await one.lease.renew()
    assert await async_client().exists(LEASE + one.lease.token)
    await one.publisher.publish(numbered(lost.id, told("a")))


async def test_after_redis_was_away_everybody_has_time_to_renew():
    """Whose own lease is as new as all others' takes nobody's jobs yet."""
    one, two = await Worker.start(), await Worker.start()
    lost = await one.take()
    await silence(one)
    await silence(two)
    assert await two.claim() == []
    await two.lease.renew()
    assert not [found for found in await two.claim() if found.job == lost]


async def test_a_worker_that_gives_up_leaves_its_jobs_at_once():
    one, two = await Worker.start(), await Worker.start()
    left = await one.take()
    await one.lease.give_up(in_order=True)
    assert Claimed(left, "") in await two.claim()
    with pytest.raises(Fenced):
        await one.publisher.publish(numbered(left.id, told("a")))


async def test_what_a_fenced_worker_takes_is_taken_from_it():
    name = new_id()
    before = await Worker.start(name)
    after = await Worker.start(name)
    await after.claim()
    late = await before.take()
    assert Claimed(late, "") in await after.claim()


async def test_a_job_that_its_worker_tried_again_alone_is_named_when_it_dies():
    name = new_id()
    before = await Worker.start(name)
    poison, other = await before.take(), await before.take()
    before.lease.suspect_sync(other.id)
    before.lease.suspect_sync("")
    before.lease.suspect_sync(poison.id)
    after = await Worker.start(name)
    claimed = {found.job.id: found.culprit for found in await after.claim()}
    assert (claimed[poison.id], claimed[other.id]) == (poison.id, poison.id)


async def test_of_two_that_were_tried_at_once_none_is_to_blame_and_none_after_an_orderly_end():
    one, two, three = await Worker.start(), await Worker.start(), await Worker.start()
    first, second = await one.take(), await two.take()
    await one.lease.suspect(first.id)
    one.lease.suspect_sync("another")
    await two.lease.suspect(second.id)
    await one.lease.give_up(in_order=False)
    await two.lease.give_up(in_order=True)
    claimed = {found.job.id: found.culprit for found in await three.claim()}
    assert (claimed[first.id], claimed[second.id]) == ("", "")


async def test_no_incarnation_leaves_anything_behind():
    name = new_id()
    for _ in range(3):
        worker = await Worker.start(name)
        await worker.take()
        await worker.claim()
    incarnations: Any = await async_client().hgetall(INCARNATIONS)
    assert [t.decode() for t, w in incarnations.items() if w.decode() == name] == [worker.lease.token]
    consumers = await async_client().xinfo_consumers(JOBS, WORKER_GROUP)
    known = {int(c["name"]) for c in consumers if c["name"].isdigit()}
    assert max(known) == int(worker.lease.token)
    assert {int(token) for token in await async_client().hkeys(INCARNATIONS) if token != b"data"} >= known


async def test_when_redis_comes_back_without_its_data_the_worker_writes_its_logs_again(redis_server):
    one = await Worker.start()
    id, over = new_id(), new_id()
    events = numbered(id, told("a", "b", "c"))
    await one.publisher.publish(events[:3])
    await one.publisher.publish(numbered(over, told("x")))
    redis_server.kill()
    redis_server.start()
    await one.publisher.publish(events[3:4])
    assert await log.read(id) == [event[1:] for event in events[:4]]
    redis_server.kill()
    redis_server.start()
    assert not await one.lease.renew()
    await one.publisher.restore()
    assert await one.lease.renew()
    await one.publisher.publish(events[4:])
    assert await log.read(id) == [event[1:] for event in events]
    assert await log.read(over) == []
    later = await Worker.start()
    assert int(later.lease.token) > int(one.lease.token)


async def test_a_lost_answer_loses_no_job(monkeypatch):
    worker, wanted = await Worker.start(), job()
    await jobs.submit(wanted)
    read = worker.reader._read
    cut: list[Any] = []

    async def lossy(start, count):
        found = await read(start, count)
        if found and not cut:
            cut.append(found)
            worker.reader._is_unsure = True
            raise ConnectionError
        return found

    monkeypatch.setattr(worker.reader, "_read", lossy)
    monkeypatch.setattr(job_reader, "BLOCK_MS", 10)
    later = job()
    await jobs.submit(later)
    found = []
    while not cut or wanted not in found:
        found += await worker.reader.read()
        found += [one.job for one in await worker.claim()]
    assert found.count(wanted) == 1
