"""API streams that can be taken up again: whose they are, what their bytes are made from, and who reads them.

The connection that came last is the stream's reader. When it leaves, the job is cancelled; one that came
before it and is found dead only now cancels nothing.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from dataclasses import asdict, dataclass
from typing import Any

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


def new_reader() -> str:
    """A name for a connection that reads a stream."""
    return uuid.uuid4().hex


def add(pipe: Any, job_id: str, found: Stream, reader: str) -> None:
    """Keep a stream with its first reader, in the pipeline that submits its job."""
    pipe.hset(stream(job_id), mapping={**asdict(found), "reader": reader})
    pipe.expire(stream(job_id), log.KEEP_S)


async def find(job_id: str, generations: list[str]) -> Stream | None:
    """The stream of a job; None when there is none, or the log of one of its generations is gone.

    Raises RedisError or OSError.
    """
    pipe = async_client().pipeline(transaction=False)
    pipe.hgetall(stream(job_id))
    pipe.exists(*map(event_log, generations))
    fields, n_logs = await pipe.execute()
    if n_logs < len(generations) or b"owner" not in fields:
        return None
    found = {name.decode(): value.decode() for name, value in fields.items()}
    return Stream(
        found["owner"], found["body"], found["shown_id"], found["model"], created=int(found["created"])
    )


async def take(job_id: str, reader: str) -> None:
    """Be the reader of a stream from now on. Raises RedisError or OSError."""
    await async_client().hset(stream(job_id), "reader", reader)


async def leave(job_id: str, reader: str) -> None:
    """Cancel the job, unless somebody else has become its reader. Tries for some seconds while Redis is
    away."""
    fields = [part for pair in Command("cancel", job_id)._asdict().items() for part in pair]
    try:
        async with asyncio.timeout(GIVE_UP_S):
            await patiently(lambda: LEAVE.run((stream(job_id), CONTROL), (reader, *fields)))
    except TimeoutError:
        logger.error("Generation %s could not be cancelled: Redis is away", job_id)
