"""A job that a request of this process waits for: submitted, submitted again when Redis has lost it, and
cancelled when its reader leaves."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from inference import drain
from inference.broker import control, jobs, streams
from inference.broker.streams import Stream
from inference.messages import Job

logger = logging.getLogger(__name__)


class Following(Protocol):
    """Who follows one generation of the job."""

    @property
    def has_text(self) -> bool:
        """Some of its text has been heard."""

    def begin_again(self) -> None:
        """Its events come anew, from number 1 on."""


class Submission:
    """`entry` is the job's in the queue, if this process put it there."""

    def __init__(
        self, job: Job, record: dict[str, Any] | None, kept: Stream | None, followed: Sequence[Following]
    ) -> None:
        self._job, self._record, self._kept, self._followed = job, record, kept, followed
        self._reader = streams.new_reader()
        self._is_whole = False  # its logs hold nothing that another connection has brought about
        self.entry: str | None = None

    async def submit(self, *, is_resumed: bool) -> None:
        """`is_resumed`: nothing but the reader is new, unless the job is to go on. Raises RedisError or
        OSError while Redis is away."""
        if is_resumed and not self._job.goes_on:
            await streams.take(self._job.id, self._reader, self._job.reply_to)
            return
        self._is_whole = not is_resumed
        self.entry = await jobs.submit(self._job, self._record, self._kept, self._reader)

    async def is_in_queue(self) -> bool:
        """Whether it is known not to have come to its end. Raises RedisError or OSError."""
        return self.entry is not None and await jobs.is_in_queue(self.entry)

    @property
    def can_begin_again(self) -> bool:
        """Whether nobody could tell a second beginning from the first: an answer in one piece, or a stream of
        which no text has come."""
        return self._is_whole and (self._kept is None or not any(one.has_text for one in self._followed))

    async def begin_again(self) -> None:
        """Submit it again if nobody knows of it any more. Raises RedisError or OSError while Redis is
        away."""
        entry = await jobs.submit_again(self._job, self._record, self._kept, self._reader)
        if entry is not None and entry != self.entry:
            logger.warning("%s was lost by Redis and is submitted again", self._job.id)
            self.entry = entry
            for one in self._followed:
                one.begin_again()

    async def leave(self) -> None:
        """Its reader goes: cancel it, unless it has another reader or is to have one."""
        if self._kept is None:
            await control.cancel(self._job.id)
        elif not drain.is_over():  # else whoever comes back goes on, and the workers wait for that
            await streams.leave(self._job.id, self._reader)


@asynccontextmanager
async def submitted(
    job: Job,
    record: dict[str, Any] | None,
    kept: Stream | None,
    followed: Sequence[Following],
    is_over: Callable[[], bool],
    *,
    is_resumed: bool,
) -> AsyncIterator[Submission]:
    """Submit a job whose generations are followed; leaving before it `is_over`, for whatever reason, cancels
    it. Raises RedisError or OSError while Redis is away."""
    submission = Submission(job, record, kept, followed)
    try:
        await submission.submit(is_resumed=is_resumed)
    except asyncio.CancelledError:
        await submission.leave()
        raise
    try:
        yield submission
    finally:
        if not is_over():
            await submission.leave()
