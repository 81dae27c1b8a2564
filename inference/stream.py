"""One generation on its way to a client: events, notices and keepalives, as the bytes of one API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from inference.broker import control, jobs, occupancy
from inference.broker.connect import AWAY
from inference.broker.hub import Follower, hub
from inference.messages import TERMINAL, Accepted, Event, Failed, Job, Preempted, Resumed, Started, Token
from inference.wire import sse
from inference.wire.api import Encoder
from inference.wire.errors import RequestError

PARKED_EVERY = 2.0  # seconds between two keepalives of a parked stream, whatever the ping interval
LOOK_EVERY = 2.0  # seconds of silence after which the log and the workers are looked at
DEAD_AFTER = 60.0  # seconds without any live worker: one that died loads its model again first
WORKER_DIED = RequestError(503, "", "The worker died while it ran this request. Send it again.")


class Progress:
    """Follows a generation and knows its state: submitted, queued, prefill, decode or parked."""

    def __init__(self, follower: Follower, look_every: float, dead_after: float) -> None:
        self.state = "submitted"
        self._follower = follower
        self._look_every = look_every
        self._dead_after = dead_after
        self._dead_since: float | None = None
        self._before_park = "queued"
        self.is_over = False

    async def next(self, deadline: float) -> Event | None:
        """The next event, or None at `deadline` or after a silence in which nothing was wrong.

        Raises RequestError (503) when no worker has lived for some time.
        """
        loop = asyncio.get_running_loop()
        found = await self._follower.next(min(deadline, loop.time() + self._look_every))
        if found is not None:
            self._dead_since = None
            self._note(found[1])
            return found[1]
        await self._look()
        return None

    def ready(self) -> Event | None:
        """The next event if it has come already."""
        found = self._follower.ready()
        if found is None:
            return None
        self._note(found[1])
        return found[1]

    def _note(self, event: Event) -> None:
        if type(event) is Token:
            if event.text:
                self.state = "decode"
        elif isinstance(event, Accepted):
            self.state = "queued"
        elif isinstance(event, Started):
            self.state = "prefill"
        elif isinstance(event, Preempted):
            self._before_park, self.state = self.state, "parked"
        elif isinstance(event, TERMINAL):
            self.is_over = True
        elif isinstance(event, Resumed):
            self.state = "prefill" if self._before_park == "queued" else self._before_park

    async def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(1):  # a Redis that hangs must not silence the keepalives
                alive = await occupancy.any_alive()
        except AWAY:
            return  # nothing is known of the workers
        if alive:
            self._dead_since = None
        elif self._dead_since is None:
            self._dead_since = now
        elif now - self._dead_since > self._dead_after:
            raise WORKER_DIED


@asynccontextmanager
async def running(
    job: Job,
    record: dict[str, Any] | None,
    *,
    look_every: float = LOOK_EVERY,
    dead_after: float = DEAD_AFTER,
) -> AsyncIterator[Progress]:
    """Submit a job and follow it; leaving before its last event, for whatever reason, cancels it.

    Raises RedisError or OSError while Redis is away.
    """
    async with hub().follow(job.id, fresh=True) as follower:
        progress = Progress(follower, look_every, dead_after)
        try:
            await jobs.submit(job, record)
        except asyncio.CancelledError:
            await control.cancel(job.id)
            raise
        try:
            yield progress
        finally:
            if not progress.is_over:
                await control.cancel(job.id)


async def relay(
    progress: Progress,
    encoder: Encoder,
    send: Callable[[bytes], Awaitable[None]],
    *,
    arrived: float,
    ping_every: float | None,
    parked_every: float = PARKED_EVERY,
    notices: bool = True,
) -> Event:
    """Send everything that the client is to hear, up to the last event, which is returned.

    A comment is due a fixed time after the last bytes (`arrived`, of `loop.time()`, counts as such), and
    nothing but bytes moves that. None is sent before the request is accepted, so that a refusal can still
    be a plain error. `ping_every` None: only a parked stream has keepalives. `notices` False: no comments
    of any kind. A Failed that comes before any byte raises its RequestError instead.
    """
    loop = asyncio.get_running_loop()
    last_sent, is_silent = arrived, True
    while True:
        every = parked_every if progress.state == "parked" else ping_every
        wanted = notices and every is not None and progress.state != "submitted"
        due = last_sent + every if wanted and every is not None else float("inf")
        event = await progress.next(due)
        data = b""
        while event is not None:  # what has come together goes out together
            if isinstance(event, Failed) and is_silent and not data:
                raise RequestError.from_failed(event)
            if notices or not isinstance(event, Preempted | Resumed):
                data += encoder.event(event)
            if isinstance(event, TERMINAL):
                break
            event = progress.ready()
        if not data and event is None and loop.time() >= due:
            data = sse.keepalive(progress.state)
        if data:
            await send(data)
            last_sent, is_silent = loop.time(), False
        if event is not None:
            return event
