"""A worker's end of the queue: jobs are taken, given back, claimed from who is gone, and acknowledged.

The consumers of the stream's group are incarnations of workers (`lease.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from redis.exceptions import ResponseError

from inference.messages import Job

from .connect import AWAY, BLOCK_MS, Script, async_client, entries, patiently
from .keys import INCARNATIONS, JOBS, LEASE, QUEUED, SUSPECTS, WORKER_GROUP
from .lease import HOLDS, LASTS_S, STANDING, Lease

logger = logging.getLogger(__name__)

BATCH = 16  # jobs taken at once: what one worker takes, no other can
ALL = 1_000_000
LEFT = "left"  # the consumer of what was given back: none of the incarnations, so that others claim it

Found = tuple[bytes, dict[bytes, bytes]]  # an entry: its id and its fields

# What incarnations that are gone had taken becomes this one's, and they are fenced. Gone is at once who left
# the hash of incarnations, and whose lease ran out once this one's own has lasted for as long: after Redis
# was away everybody has time to renew.
# KEYS: jobs, incarnations. ARGV: token, data. An array of entry, fields, and the one that was tried again
# when its worker died, or "", or LEFT for what was given back.
CLAIM = Script(f"""{STANDING}
local mine = redis.call('GET', '{LEASE}' .. ARGV[1])
if not mine or standing(KEYS[2], ARGV[1], ARGV[2]) ~= {HOLDS} then return {{}} end
local patient = now() - mine >= {LASTS_S * 1000}
local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], '{WORKER_GROUP}')
if consumers.err then return {{}} end
local claimed = {{}}
for _, consumer in ipairs(consumers) do
  local about = {{}}
  for i = 1, #consumer, 2 do about[consumer[i]] = consumer[i + 1] end
  local token = about['name']
  local left = redis.call('HEXISTS', KEYS[2], token) == 0
  local silent = patient and about['pending'] > 0 and redis.call('EXISTS', '{LEASE}' .. token) == 0
  if token ~= ARGV[1] and (left or silent) then
    redis.call('HDEL', KEYS[2], token)
    local tried = redis.call('HVALS', '{SUSPECTS}' .. token)
    local culprit = token == '{LEFT}' and token or #tried == 1 and tried[1] or ''
    for _, pending in ipairs(redis.call('XPENDING', KEYS[1], '{WORKER_GROUP}', '-', '+', {ALL}, token)) do
      local found = redis.call('XCLAIM', KEYS[1], '{WORKER_GROUP}', ARGV[1], 0, pending[1])
      if found[1] then claimed[#claimed + 1] = {{found[1][1], found[1][2], culprit}} end
    end
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], '{WORKER_GROUP}', token)
    redis.call('DEL', '{LEASE}' .. token, '{SUSPECTS}' .. token)
  end
end
return claimed
""")

# KEYS: jobs. ARGV: token, then entries. What another has claimed meanwhile is its own.
LEAVE = Script(f"""
for i = 2, #ARGV do
  if #redis.call('XPENDING', KEYS[1], '{WORKER_GROUP}', ARGV[i], ARGV[i], 1, ARGV[1]) > 0 then
    redis.call('XCLAIM', KEYS[1], '{WORKER_GROUP}', '{LEFT}', 0, ARGV[i], 'JUSTID')
  end
end
""")


class Claimed(NamedTuple):
    """A job of an incarnation that is gone. `culprit` is the id of the job, or of the one of its
    generations, that this was trying again, alone, after a death; "" when there was none."""

    job: Job
    culprit: str
    gone: str = "worker"  # or "client": it was cancelled, and its client is back; or "": nobody had begun it

    @classmethod
    def of(cls, job: Job, culprit: str) -> Claimed:
        """As CLAIM tells it."""
        if culprit == LEFT:
            return cls(job, "", "client" if job.goes_on else "")
        return cls(job, culprit)


class _Taken(NamedTuple):
    """A job of ours: its entry in the queue, and the ids of what it generates."""

    entry: bytes
    generations: list[str]


class JobReader:
    """A worker's end of the queue, under its incarnation's name. Waits for Redis whenever it is away; never
    raises for it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._taken: dict[str, _Taken] = {}  # by the job's id
        self._is_unsure = False  # an answer was lost: there may be entries that are ours, and nobody runs
        self._again: list[Claimed] = []
        self._claiming = asyncio.Lock()

    async def read(self) -> list[Job]:
        """The next jobs, oldest first; [] when none came for some seconds."""
        if self._is_unsure:
            await self._look_again()
        return await self._jobs(await patiently(lambda: self._read(">", BATCH)))

    async def claim(self, lease: Lease) -> list[Claimed]:
        """The jobs of incarnations that are gone, which are now ours, and of our own those that we took
        without hearing of it."""
        async with self._claiming:
            found = await patiently(lambda: self._claim(lease))
            culprits = {entry: culprit.decode(errors="replace") for entry, _, culprit in found}
            jobs = await self._jobs([(e, dict(zip(f[::2], f[1::2], strict=True))) for e, f, _ in found])
            again, self._again = self._again, []
            return [Claimed.of(job, culprits[self._taken[job.id].entry]) for job in jobs] + again

    async def ack(self, ids: Iterable[str]) -> None:
        """These jobs are over; their entries are removed."""
        over = [self._taken.pop(id) for id in ids if id in self._taken]
        await self._remove([job.entry for job in over], [id for job in over for id in job.generations])

    async def leave(self, jobs: Sequence[Job]) -> None:
        """Give back jobs that were read and are not begun: another worker claims them, in their order."""
        found = [self._taken.pop(job.id).entry for job in jobs]
        await patiently(lambda: LEAVE.run((JOBS,), (self._name, *found)))

    async def _look_again(self) -> None:
        async with self._claiming:
            self._is_unsure = False
            jobs = await self._jobs(await patiently(lambda: self._read("0", ALL)))
            self._again += [Claimed(job, "") for job in jobs]

    async def _claim(self, lease: Lease) -> list[Any]:
        try:
            return list(await CLAIM.run((JOBS, INCARNATIONS), (lease.token, lease.data)))
        except AWAY:
            self._is_unsure = True
            raise

    async def _read(self, start: str, count: int) -> list[Found]:
        client = async_client()
        try:
            return entries(
                await client.xreadgroup(WORKER_GROUP, self._name, {JOBS: start}, count=count, block=BLOCK_MS)
            )
        except ResponseError as error:
            if "NOGROUP" not in str(error):
                raise
        except AWAY:
            self._is_unsure = True
            raise
        try:
            await client.xgroup_create(JOBS, WORKER_GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
        return []

    async def _jobs(self, found: list[Found]) -> list[Job]:
        jobs, unusable = [], []
        for entry, fields in found:
            try:
                job = Job.from_json(fields[b"job"])
            except (KeyError, ValueError):
                logger.error("Entry %s of the queue is no job and is dropped", entry.decode())
                unusable.append(entry)
                continue
            if job.id in self._taken:
                if self._taken[job.id].entry != entry:
                    unusable.append(entry)
                continue
            self._taken[job.id] = _Taken(entry, job.generations())
            jobs.append(job)
        await self._remove(unusable)
        return jobs

    async def _remove(self, found: list[bytes], generations: Sequence[str] = ()) -> None:
        if not found:
            return
        pipe = async_client().pipeline(transaction=False)

        async def remove() -> None:
            pipe.xack(JOBS, WORKER_GROUP, *found)
            pipe.xdel(JOBS, *found)
            if generations:
                pipe.hdel(QUEUED, *generations)
            await pipe.execute()

        await patiently(remove)
