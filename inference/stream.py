"""One generation on its way to a client: events, notices and keepalives, as the bytes of one API."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from inference.broker import occupancy
from inference.broker.connect import AWAY
from inference.broker.hub import Follower, hub
from inference.broker.streams import Stream
from inference.messages import (
    TERMINAL,
    Accepted,
    Event,
    Failed,
    Finished,
    Job,
    Preempted,
    Resumed,
    Started,
    Token,
)
from inference.submission import Submission, submitted
from inference.wire import sse
from inference.wire.api import Encoder
from inference.wire.errors import RequestError
from inference.wire.ids import Ids

PARKED_EVERY = 2.0  # seconds between two keepalives of a parked stream, whatever the ping interval
LOOK_EVERY = 2.0  # seconds of silence after which the workers are looked at
NEAR = 0.5  # seconds: what a client is to hear so soon comes before a look, which can take time
DEAD_AFTER = 60.0  # seconds without any live worker: one that died loads its model again first
# Seconds in which a generation is neither in the queue nor at a live worker: then it is asked for again, and
# where that cannot be, it is given up.
AGAIN_AFTER, LOST_AFTER = 10.0, 30.0
MOST_AT_ONCE = 64 << 10  # bytes of one message to a client, about; what has come besides follows
WORKER_DIED = RequestError(503, "", "The worker died while it ran this request. Send it again.")
CANCELLED = RequestError(
    503,
    "",
    "The generation was cancelled, as when an earlier connection of its client is closed. Repeat the request "
    "with Last-Event-ID, the id of the last event that came, and it goes on.",
)
LOST = RequestError(503, "", "The request was lost when Redis was restarted. Send it again.")


class Progress:
    """Follows a generation and knows its state: submitted, queued, prefill, decode or parked."""

    def __init__(self, follower: Follower, look_every: float, dead_after: float) -> None:
        self.state = "submitted"
        self.submission: Submission | None = None  # of its job
        self._follower = follower
        self._look_every = look_every
        self._dead_after = dead_after
        self._heard_at = asyncio.get_running_loop().time()
        self._dead_since: float | None = None
        self._lost_since: float | None = None
        self._before_park = "queued"
        self.is_over = False

    async def next(self, deadline: float) -> Event | None:
        """The next event, or None at `deadline` or after a silence in which nothing was wrong.

        Raises RequestError (503) when no worker has lived for some time, or none has the generation.
        """
        loop = asyncio.get_running_loop()
        look_at = self._heard_at + self._look_every
        found = await self._follower.next(deadline if deadline < look_at + NEAR else look_at)
        if found is not None:
            self._heard_at = loop.time()
            self._dead_since = self._lost_since = None
            self._note(found[1])
            return found[1]
        if loop.time() < deadline:
            self._heard_at = loop.time()
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
                workers = await occupancy.overview()
                is_known = self._follower.id in workers.generations
                if workers.alive and not is_known and self.submission is not None:
                    is_known = await self.submission.is_in_queue()
        except AWAY:
            return  # nothing is known of the workers
        if not workers.alive:
            self._lost_since = None
            self._dead_since = self._dead_since or now
            if now - self._dead_since > self._dead_after:
                raise WORKER_DIED
            return
        self._dead_since = None
        self._lost_since = None if is_known else self._lost_since or now
        if self._lost_since is not None:
            await self._miss(now - self._lost_since)

    async def _miss(self, lost_for: float) -> None:
        """Nobody has known of it for so many seconds."""
        if lost_for > LOST_AFTER:
            raise LOST
        if lost_for > AGAIN_AFTER and self.submission is not None and self.submission.can_begin_again:
            with contextlib.suppress(*AWAY):
                async with asyncio.timeout(1):
                    await self.submission.begin_again()

    # --- what its submission asks of it -----------------------------------------------------------

    @property
    def has_text(self) -> bool:
        """Some of its text has been heard."""
        return "decode" in (self.state, self._before_park)

    def begin_again(self) -> None:
        """Its events come anew, from number 1 on."""
        self.state = "submitted" if self.state == "submitted" else "queued"
        self._lost_since = None
        self._follower.begin_again()


@asynccontextmanager
async def running(
    job: Job,
    record: dict[str, Any] | None,
    kept: Stream | None = None,
    *,
    is_resumed: bool = False,
    look_every: float = LOOK_EVERY,
    dead_after: float = DEAD_AFTER,
) -> AsyncIterator[Progress]:
    """Submit a job and follow it; leaving before its last event, for whatever reason, cancels it.

    `kept`: its stream can be taken up again. `is_resumed`: it is taken up here, from its first event on, and
    nothing is submitted, unless the job is to go on. Raises Crowded, and RedisError or OSError while Redis
    is away.
    """
    async with hub().follow(job.id, fresh=not is_resumed) as follower:
        progress = Progress(follower, look_every, dead_after)
        async with submitted(
            job, record, kept, [progress], lambda: progress.is_over, is_resumed=is_resumed
        ) as submission:
            progress.submission = submission
            yield progress


def is_cancelled(event: Event) -> bool:
    """Whether its generation was cancelled: not by its reader, who is still here."""
    return isinstance(event, Finished) and event.stop_type == "cancelled"


class Comments(NamedTuple):
    """What a stream says beside its data: notices, and a keepalive a fixed time after the last bytes, which
    nothing but bytes moves."""

    arrived: float  # of `loop.time()`; counts as bytes
    ping_every: float | None  # seconds; None: only a parked stream has keepalives
    parked_every: float = PARKED_EVERY
    is_on: bool = True

    def due(self, last_sent: float, *, is_accepted: bool, is_parked: bool) -> float:
        """When the next is. None before the request is accepted, so that a refusal can still be a plain
        error."""
        every = self.parked_every if is_parked else self.ping_every
        return last_sent + every if self.is_on and is_accepted and every is not None else float("inf")

    def shows(self, event: Event) -> bool:
        """Whether an event is for the client at all."""
        return self.is_on or not isinstance(event, Preempted | Resumed)


async def relay(
    progress: Progress,
    encoder: Encoder,
    ids: Ids,
    send: Callable[[bytes], Awaitable[None]],
    comments: Comments,
) -> Event:
    """Send everything that the client is to hear and does not have, up to the last event, which is returned.

    A Failed that comes before any byte raises its RequestError instead; a cancellation raises one (503) after
    what came before it.
    """
    loop = asyncio.get_running_loop()
    last_sent, is_silent = comments.arrived, not ids.is_resumed
    while True:
        state = progress.state
        due = comments.due(last_sent, is_accepted=state != "submitted", is_parked=state == "parked")
        event = await progress.next(due)
        data = b""
        while event is not None:  # what has come together goes out together
            if isinstance(event, Failed) and is_silent and not data:
                raise RequestError.from_failed(event)
            if is_cancelled(event):
                if data:
                    await send(data)
                raise CANCELLED
            if comments.shows(event):
                data += ids(encoder.event(event))
            if isinstance(event, TERMINAL):
                break
            event = progress.ready() if len(data) < MOST_AT_ONCE else None
        if not data and event is None and loop.time() >= due:
            data = sse.keepalive(progress.state)
        if data:
            await send(data)
            last_sent, is_silent = loop.time(), False
        if event is not None:
            return event
