"""API streams that can be taken up again: whose they are, what their bytes are made from, and who reads them.

The connection that came last is the stream's reader. When it leaves, the job is cancelled; one that came
before it and is found dead only now cancels nothing.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from inference.messages import sibling_ids

from . import log
from .connect import Script, async_client, patiently
from .control import GIVE_UP_S, MAX_COMMANDS, Command
from .keys import CONTROL, event_log, stream

logger = logging.getLogger(__name__)

# KEYS: the stream's hash, the commands. ARGV: who leaves, then the command's fields and values.
LEAVE = Script(f"""
local reader = redis.call('HGET', KEYS[1], 'reader')
if reader and reader ~= ARGV[1] then
  return 0
end
redis.call('XADD', KEYS[2], 'MAXLEN', '~', {MAX_COMMANDS}, '*', unpack(ARGV, 2))
return 1
""")


@dataclass(frozen=True, slots=True)
class Stream:
    """`owner` and `body` are digests of who asked and for what; the other fields are what the bytes show.
    `created` is in seconds since the epoch."""

    owner: str
    body: str
    shown_id: str
    model: str
    created: int


class Found(NamedTuple):
    """A stream that somebody wants to take up."""

    job_id: str  # under which it goes on
    stream: Stream
    is_cancelled: bool  # so that a worker must be asked to go on with it
    over: frozenset[str] = frozenset()  # of its generations under a new id, those that end where they ended


def new_reader() -> str:
    """A name for a connection that reads a stream."""
    return uuid.uuid4().hex


def add(pipe: Any, job_id: str, found: Stream, reader: str, group: str) -> None:
    """Keep a stream with its first reader, in the pipeline that submits its job."""
    pipe.hset(stream(job_id), mapping={**asdict(found), "reader": reader, "group": group})
    pipe.expire(stream(job_id), log.KEEP_S)


async def find(job_id: str, n_generations: int) -> Found | None:
    """The stream of a job, as it goes on now; None when there is none, or the log of one of its generations
    is gone. Raises RedisError or OSError."""
    passed: set[str] = set()
    while True:
        pipe = async_client().pipeline(transaction=False)
        pipe.hgetall(stream(job_id))
        for id in sibling_ids(job_id, n_generations):
            pipe.xrevrange(event_log(id), count=1)
        fields, *tails = await pipe.execute()
        if not all(tails):
            return None
        try:
            found = {name.decode(): value.decode() for name, value in fields.items()}
            kept = Stream(
                found["owner"],
                found["body"],
                found["shown_id"],
                found["model"],
                created=int(found["created"]),
            )
            goes_on_as = found.get("goes_on_as", "")
            int(goes_on_as or "0", 16)
        except (KeyError, ValueError):  # nothing that can be taken up
            return None
        if goes_on_as:
            passed.add(job_id)
            job_id = goes_on_as
            if job_id in passed:
                return None
            continue
        return Found(job_id, kept, any(log.is_cancelled(tail[0][1]) for tail in tails))


async def renew(found: Found, n_generations: int, new_id: str) -> Found:
    """Let a job that was cancelled go on, under a new id, whose logs begin with what the old ones hold.

    The job is to be submitted, unless somebody else has been faster: `is_cancelled` is False then. Raises
    RedisError or OSError.
    """
    client = async_client()
    old, new = (sibling_ids(id, n_generations) for id in (found.job_id, new_id))
    over = {n for o, n in zip(old, new, strict=True) if await log.copy_uncancelled(o, n)}
    if await client.hsetnx(stream(found.job_id), "goes_on_as", new_id):
        return found._replace(job_id=new_id, over=frozenset(over))
    await client.delete(*map(event_log, new))
    winner: Any = await client.hget(stream(found.job_id), "goes_on_as")
    return found._replace(job_id=winner.decode(), is_cancelled=False)


async def take(job_id: str, reader: str, group: str) -> None:
    """Be the reader of a stream from now on, told by this channel group. Raises RedisError or OSError."""
    await async_client().hset(stream(job_id), mapping={"reader": reader, "group": group})


async def group(job_id: str) -> str | None:
    """The channel group of the reader; None for a job that has no stream. Raises RedisError or OSError."""
    found: Any = await async_client().hget(stream(job_id), "group")
    return found.decode(errors="replace") if found else None


async def leave(job_id: str, reader: str) -> None:
    """Cancel the job, unless somebody else has become its reader. Tries for some seconds while Redis is
    away."""
    fields = [part for pair in Command("cancel", job_id)._asdict().items() for part in pair]
    try:
        async with asyncio.timeout(GIVE_UP_S):
            await patiently(lambda: LEAVE.run((stream(job_id), CONTROL), (reader, *fields)))
    except TimeoutError:
        logger.error("Generation %s could not be cancelled: Redis is away", job_id)
