"""The siblings of a request on their way to a client: several generations as one stream, or one body."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from inference.broker import jobs
from inference.broker.connect import AWAY
from inference.broker.hub import MAX_QUEUED, hub
from inference.broker.streams import Stream
from inference.messages import TERMINAL, Accepted, Event, Failed, Job, Preempted, Resumed
from inference.stream import (
    CANCELLED,
    DEAD_AFTER,
    LOOK_EVERY,
    MOST_AT_ONCE,
    Comments,
    Progress,
    is_cancelled,
)
from inference.submission import submitted
from inference.tasks import end, heed
from inference.wire import sse
from inference.wire.errors import RequestError
from inference.wire.ids import Ids
from inference.wire.siblings import SiblingsEncoder, failure_of

logger = logging.getLogger(__name__)

MAX_WAITING = 1000  # events of all siblings that a slow reader has not taken; the rest waits in the hub


class Siblings:
    """Follows the generations of one job, and knows the state of the whole."""

    def __init__(
        self, job: Job, record: dict[str, Any], progress: Sequence[Progress], to_record: Sequence[str]
    ) -> None:
        """`to_record` are those whose rows begin with the acceptance of the request."""
        self.is_accepted = False
        self._job, self._record, self._progress = job, record, progress
        self._to_record = to_record
        self._error: Exception | None = None
        self._going = set(range(len(progress)))
        self._parked: set[int] = set()
        self._events: asyncio.Queue[tuple[int, Event | Exception]] = asyncio.Queue(MAX_WAITING)

    @property
    def is_over(self) -> bool:
        return not self._going

    @property
    def is_parked(self) -> bool:
        """Whether any of them is."""
        return bool(self._parked)

    @property
    def state(self) -> str:
        """parked if any is, or else that of the one that has come farthest."""
        if self.is_parked:
            return "parked"
        states = {self._progress[index].state for index in self._going}
        return next((state for state in ("decode", "prefill", "queued") if state in states), "submitted")

    async def next(self, deadline: float) -> tuple[int, Event] | None:
        """The next event and whose it is, or None at `deadline`.

        Raises RequestError when the worker refuses the request, or when none has lived for some time.
        """
        found = None
        heed()
        if self._error is None:
            try:
                async with asyncio.timeout_at(None if deadline == float("inf") else deadline):
                    found = self._note(*await self._events.get())
            except TimeoutError:
                return None
        if self._error is not None:
            raise self._error
        if self.is_accepted and self._to_record:
            ids, self._to_record = self._to_record, ()
            await self._begin_rows(ids)
        return found

    def ready(self) -> tuple[int, Event] | None:
        """The next event if it has come already. An error waits for `next`."""
        if self._error is not None or self._events.empty():
            return None
        return self._note(*self._events.get_nowait())

    def _note(self, index: int, event: Event | Exception) -> tuple[int, Event] | None:
        if isinstance(event, Exception):
            self._error = event
            return None
        if isinstance(event, Preempted):
            self._parked.add(index)
        elif isinstance(event, Resumed):
            self._parked.discard(index)
        elif isinstance(event, TERMINAL):
            if isinstance(event, Failed) and not self.is_accepted:
                self._going.clear()  # one is told for all
                self._error = RequestError.from_failed(event)
                return None
            self._parked.discard(index)
            self._going.discard(index)
        elif isinstance(event, Accepted):
            self.is_accepted = True
            self._parked.discard(index)  # it may begin anew
        return index, event

    async def rest(self) -> list[list[Event]]:
        """All events of each up to its last. Raises RequestError as soon as one has failed."""
        events: list[list[Event]] = [[] for _ in self._progress]
        while self._going:
            found = await self.next(float("inf"))
            if found is not None:
                index, event = found
                if isinstance(event, Failed):
                    raise failure_of(index, event)
                if isinstance(event, Accepted):  # it may begin anew
                    events[index].clear()
                events[index].append(event)
        return events

    async def follow(self, index: int) -> None:
        """Bring in the events of one of them, up to its last."""
        progress = self._progress[index]
        try:
            while not progress.is_over:
                event = await progress.next(float("inf"))
                if event is not None:
                    await self._events.put((index, event))
        except Exception as error:
            await self._events.put((index, error))

    async def _begin_rows(self, ids: Sequence[str]) -> None:
        """A request that is refused leaves one row, so the others' begin with its acceptance."""
        try:
            async with asyncio.timeout(1):  # a Redis that hangs must not silence the keepalives
                await jobs.record_submitted(ids, self._record)
        except AWAY as error:
            logger.warning("The rows of request %s will lack whose they are: %s", self._job.id, error)


@asynccontextmanager
async def running(
    job: Job,
    record: dict[str, Any],
    kept: Stream | None = None,
    *,
    is_resumed: bool = False,
    over: Collection[str] = (),
    look_every: float = LOOK_EVERY,
    dead_after: float = DEAD_AFTER,
) -> AsyncIterator[Siblings]:
    """`stream.running` for siblings; leaving before the last one's end cancels all of them.

    `over`: those of a job that goes on which are over, and get no row a second time.
    """
    async with AsyncExitStack() as followers:
        ids, progress = job.generations(), []
        for id in ids:
            follower = hub().follow(id, fresh=not is_resumed, max_queued=max(16, MAX_QUEUED // len(ids)))
            progress.append(Progress(await followers.enter_async_context(follower), look_every, dead_after))
        is_new = job.goes_on or not is_resumed
        siblings = Siblings(job, record, progress, [id for id in ids[1:] if is_new and id not in over])
        of_first = None if job.id in over else record
        async with submitted(
            job, of_first, kept, progress, lambda: siblings.is_over, is_resumed=is_resumed
        ) as submission:
            for one in progress:
                one.submission = submission
            tasks = [asyncio.create_task(siblings.follow(index)) for index in range(len(progress))]
            try:
                yield siblings
            finally:
                await end(tasks)


async def relay(
    siblings: Siblings,
    encoder: SiblingsEncoder,
    ids: Ids,
    send: Callable[[bytes], Awaitable[None]],
    comments: Comments,
) -> None:
    """`stream.relay` for siblings: a comment is due a fixed time after the last bytes of any of them, as
    for a parked stream while any is parked. One that fails is told in the stream; the others go on."""
    loop = asyncio.get_running_loop()
    last_sent = comments.arrived
    while not siblings.is_over:
        due = comments.due(last_sent, is_accepted=siblings.is_accepted, is_parked=siblings.is_parked)
        found = await siblings.next(due)
        data = b""
        while found is not None:  # what has come together goes out together
            if is_cancelled(found[1]):
                if data:
                    await send(data)
                raise CANCELLED
            if comments.shows(found[1]):
                data += ids(encoder.event(*found), found[0])
            found = siblings.ready() if len(data) < MOST_AT_ONCE else None
        if siblings.is_over:
            data += ids(encoder.closing())
        elif not data and loop.time() >= due:
            data = sse.keepalive(siblings.state)
        if data:
            await send(data)
            last_sent = loop.time()
