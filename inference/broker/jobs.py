"""Work for the workers: a Redis stream with one consumer group, so that each job is taken once.

A job stays in the stream until its worker has acknowledged it. What a worker that died had taken is
found by its successor of the same id.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from redis.exceptions import ResponseError

from inference.messages import Job

from . import admission, log, records
from .connect import BLOCK_MS, async_client, entries, patiently, sync_client
from .keys import JOBS, WORKER_GROUP

logger = logging.getLogger(__name__)

BATCH = 16  # jobs taken at once: what one worker takes, no other can
ALL = 1_000_000


async def submit(job: Job, record: dict[str, Any] | None = None) -> None:
    """Hand a job to the workers. `record` is the data of its `submitted` record; None for a job that is
    no generation. Raises RedisError or OSError while Redis is away."""
    pipe = async_client().pipeline(transaction=False)
    _add(pipe, job, record)
    await pipe.execute()


def submit_sync(job: Job, record: dict[str, Any] | None = None) -> None:
    """`submit` for a thread."""
    pipe = sync_client().pipeline(transaction=False)
    _add(pipe, job, record)
    pipe.execute()


async def record_submitted(ids: Iterable[str], record: dict[str, Any]) -> None:
    """The `submitted` records of generations whose job is submitted already. Raises RedisError or OSError."""
    pipe = async_client().pipeline(transaction=False)
    for id in ids:
        records.append(pipe, id, "submitted", "", record)
    await pipe.execute()


def _add(pipe: Any, job: Job, record: dict[str, Any] | None) -> None:
    if record is not None:
        records.append(pipe, job.id, "submitted", "", record)
    admission.keep(pipe, job.id)
    pipe.xadd(JOBS, {"job": job.to_json()})


class JobReader:
    """A worker's end of the queue. Waits for Redis whenever it is away; never raises for it."""

    def __init__(self, worker_id: str) -> None:
        self._worker = worker_id
        self._taken: dict[str, bytes] = {}  # job id -> entry id

    async def read(self) -> list[Job]:
        """The next jobs, oldest first; [] when none came for some seconds."""
        return await self._jobs(await patiently(lambda: self._read(">", BATCH)))

    async def abandoned(self) -> list[tuple[Job, dict[str, int]]]:
        """What a predecessor of this id took and never finished, each with the sequence number of the
        last event of each of its generations (0: none). Ask once, before the first `read`."""
        jobs = await self._jobs(await patiently(lambda: self._read("0", ALL)))
        return [(job, {id: await _last(id) for id in job.generations()}) for job in jobs]

    async def ack(self, ids: Iterable[str]) -> None:
        """These jobs are over; their entries are removed."""
        await self._remove([self._taken.pop(id) for id in ids if id in self._taken])

    async def _read(self, start: str, count: int) -> list[tuple[bytes, dict[bytes, bytes]]]:
        client = async_client()
        try:
            return entries(
                await client.xreadgroup(
                    WORKER_GROUP, self._worker, {JOBS: start}, count=count, block=BLOCK_MS
                )
            )
        except ResponseError as error:
            if "NOGROUP" not in str(error):
                raise
        try:
            await client.xgroup_create(JOBS, WORKER_GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        return []

    async def _jobs(self, found: list[tuple[bytes, dict[bytes, bytes]]]) -> list[Job]:
        jobs, unusable = [], []
        for entry, fields in found:
            try:
                job = Job.from_json(fields[b"job"])
            except (KeyError, TypeError, ValueError):
                logger.error("Entry %s of the queue is no job and is dropped", entry.decode())
                unusable.append(entry)
                continue
            if job.id in self._taken:
                unusable.append(entry)
                continue
            self._taken[job.id] = entry
            jobs.append(job)
        await self._remove(unusable)
        return jobs

    async def _remove(self, found: list[bytes]) -> None:
        if not found:
            return
        pipe = async_client().pipeline(transaction=False)

        async def remove() -> None:
            pipe.xack(JOBS, WORKER_GROUP, *found)
            pipe.xdel(JOBS, *found)
            await pipe.execute()

        await patiently(remove)


async def _last(id: str) -> int:
    return await patiently(lambda: log.last(id))
