"""Work for the workers: a Redis stream with one consumer group, so that each job is taken once.

A job stays in the stream until its worker has acknowledged it (`job_reader.py`). A hash beside it has the
entry of each generation's job, so that nobody reads the queue to find one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from inference.messages import Job

from . import admission, records, streams
from .connect import Script, async_client, sync_client
from .keys import JOBS, QUEUED, event_log

# Of a script whose KEYS begin with the queue and its hash.
HELPERS = """
local function entry_of(id)
  local entry = redis.call('HGET', KEYS[2], id)
  return entry and #redis.pcall('XRANGE', KEYS[1], entry, entry) > 0 and entry
end
local function add(job, ids)
  local entry = redis.call('XADD', KEYS[1], '*', 'job', job)
  for _, id in ipairs(ids) do redis.call('HSET', KEYS[2], id, entry) end
  return entry
end
"""

# ARGV: the job, then the ids of its generations. The reply: its entry.
ADD = f"{HELPERS} return add(ARGV[1], {{unpack(ARGV, 2)}})"

# A job that was lost is queued again, unless a log or the queue knows of it.
# KEYS: also the logs of its generations. ARGV: as of ADD.
# The reply: its entry, and whether that is new; nothing when there is a log.
AGAIN_SOURCE = f"""{HELPERS}
for i = 3, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 then return false end
end
local entry = entry_of(ARGV[2])
if entry then return {{entry, 0}} end
return {{add(ARGV[1], {{unpack(ARGV, 2)}}), 1}}
"""
AGAIN = Script(AGAIN_SOURCE)

# ARGV: the ids of generations. The reply: those whose job is in the queue.
WAITING = f"""{HELPERS}
local found = {{}}
for _, id in ipairs(ARGV) do
  if entry_of(id) then found[#found + 1] = id end
end
return found
"""
ASKED_AT_ONCE = 500  # Redis does nothing else meanwhile


async def submit(
    job: Job, record: dict[str, Any] | None = None, stream: streams.Stream | None = None, reader: str = ""
) -> str:
    """Hand a job to the workers; its entry in the queue.

    `record` is the data of its `submitted` record; None for a job that is no generation. `stream` is kept
    for clients that take it up again, with the reader that it has now. Raises RedisError or OSError while
    Redis is away.
    """
    pipe = async_client().pipeline(transaction=False)
    if stream is not None:
        streams.add(pipe, job.id, stream, reader, job.reply_to)
    _add(pipe, job, record)
    entry: bytes = (await pipe.execute())[-1]
    return entry.decode()


async def submit_again(
    job: Job, record: dict[str, Any] | None = None, stream: streams.Stream | None = None, reader: str = ""
) -> str | None:
    """`submit` a job that Redis has lost and no worker has; once, however many do so. Its entry in the queue;
    None when a log holds some of it, so that it is not lost. Raises RedisError or OSError while Redis is
    away."""
    found: Any = await AGAIN.run(*_again(job))
    if found is None:
        return None
    entry, is_new = found
    if is_new:
        pipe = async_client().pipeline(transaction=False)
        if stream is not None:
            streams.add(pipe, job.id, stream, reader, job.reply_to)
        _add_record(pipe, job, record)
        await pipe.execute()
    return str(entry.decode())


def submit_again_sync(job: Job, record: dict[str, Any] | None = None) -> bool:
    """`submit_again` for a thread; whether it was lost and is in the queue now."""
    client = sync_client()
    found: Any = client.register_script(AGAIN_SOURCE)(*_again(job))
    if found is None or not found[1]:
        return False
    pipe = client.pipeline(transaction=False)
    _add_record(pipe, job, record)
    pipe.execute()
    return True


def _again(job: Job) -> tuple[list[str], list[str]]:
    """Keys and arguments of AGAIN."""
    ids = job.generations()
    return [JOBS, QUEUED, *map(event_log, ids)], [job.to_json(), *ids]


async def is_in_queue(entry: str) -> bool:
    """Whether this job has not come to its end. Raises RedisError or OSError."""
    return bool(await async_client().xrange(JOBS, min=entry, max=entry))


def waiting_sync(ids: Sequence[str]) -> set[str]:
    """Those of these generations whose jobs are in the queue: they are not over. For a thread."""
    script = sync_client().register_script(WAITING)
    found: set[str] = set()
    for start in range(0, len(ids), ASKED_AT_ONCE):
        answer: Any = script((JOBS, QUEUED), ids[start : start + ASKED_AT_ONCE])
        found.update(id.decode() for id in answer)
    return found


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
    _add_record(pipe, job, record)
    admission.keep(pipe, job.id)
    pipe.eval(ADD, 2, JOBS, QUEUED, job.to_json(), *job.generations())


def _add_record(pipe: Any, job: Job, record: dict[str, Any] | None) -> None:
    if record is not None:
        records.append(pipe, job.id, "submitted", "", record)
