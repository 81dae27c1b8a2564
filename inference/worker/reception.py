"""A job is considered: what is told first of each of its generations, and what is to run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from inference.broker.lease import Lease
from inference.engine.sequence import Sequence
from inference.messages import Event, Failed, Finished, Job, Timings

from .intake import NO_SEEDS, Intake, Refused

logger = logging.getLogger(__name__)

LONG_TEXT = 20_000  # characters from which tokenising leaves the asyncio thread
MUCH_TEXT = 100_000  # from which nobody else waits for it

Taken = list[tuple[Event, Sequence | None]]  # the first event of each generation of a job, and what to run

CANCELLED_UNSEEN = Finished(
    stop_type="cancelled",
    stopping_word="",
    text="",
    prompt_tokens=0,
    completion_tokens=0,
    truncated=False,
    slot=-1,
    timings=Timings(),
    parks=0,
    parked_s=0.0,
    ttft_s=0.0,
)  # of a job whose client had left before it was read


class Reception:
    """Has jobs go through the intake one at a time, and not in the asyncio thread where that takes long.
    Those with much text have a line of their own."""

    def __init__(self, intake: Intake, lease: Lease) -> None:
        self._intake, self._lease = intake, lease
        self._one_at_a_time, self._one_with_much = asyncio.Lock(), asyncio.Lock()

    def takes_long(self, job: Job) -> bool:
        """Whether others should not wait until it is considered."""
        return _length(job.body) > MUCH_TEXT

    async def consider(self, job: Job) -> Taken:
        """A job that is refused, or is no generation, has one event."""
        async with self._one_with_much if self.takes_long(job) else self._one_at_a_time:
            return await self._consider(job)

    async def consider_again(self, job: Job, seeds: Mapping[str, int]) -> Taken:
        """The same for what was accepted once, with these seeds, or may have ended a worker before it was."""
        async with self._one_with_much, self._one_at_a_time:  # or another could be what ends the worker
            if seeds:
                return await self._consider(job, seeds)
            await self._lease.suspect(job.id)
            taken = await self._consider(job)
            await self._lease.suspect("")
            return taken

    async def _consider(self, job: Job, seeds: Mapping[str, int] = NO_SEEDS) -> Taken:
        try:
            # The chat template runs in another process.
            long = _length(job.body) > LONG_TEXT or bool(job.body.get("messages"))
            if job.kind == "generate":
                if long:
                    return [*await asyncio.to_thread(self._intake.generations, job, seeds)]
                return [*self._intake.generations(job, seeds)]
            if long:
                return [(await asyncio.to_thread(self._intake.answer, job), None)]
            return [(self._intake.answer(job), None)]
        except Refused as refused:
            return [(refused.failed, None)]
        except Exception:
            logger.exception("Could not take job %s", job.id)
            return [(Failed(500, "server_error", "the worker could not read this request"), None)]


def _length(body: Any) -> int:
    """About how many characters and tokens there are in a job's body."""
    if isinstance(body, str):
        return len(body)
    if isinstance(body, dict):
        return sum(map(_length, body.values()))
    if isinstance(body, list):
        return len(body) if len(body) > MUCH_TEXT else sum(map(_length, body))
    return 1
