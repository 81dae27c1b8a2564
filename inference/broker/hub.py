"""The web process's ear: events come in one message for all, and go to whoever follows their generation.

The group message is fast and can be lost; the log is the truth. A follower reads the log when it
starts late, when it sees a gap, and when its silence has lasted and the log has more: the hub looks for
all who are silent at once, so that a silence costs next to nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from channels.layers import get_channel_layer
from django.conf import settings

from inference.messages import Event, decode_event
from inference.tasks import heed

from . import control, log
from .connect import AWAY

logger = logging.getLogger(__name__)

MAX_QUEUED = 1000  # events of one follower; what comes after them waits in the log
LOG_BATCH = 500  # entries read from the log at once
LOG_TIMEOUT_S = 1.0  # a Redis that hangs must not silence the keepalives
RETRY_S = 0.25  # between two reads of a log while Redis is away
LOOK_EVERY_S = 0.5
# Looks at which a follower had heard nothing. At the next, 1 to 1.5 s after its last event, its log is asked.
SILENT_LOOKS = 2
MOST_LOOKED_AT = 1000  # logs in one round trip

_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """The hub of the running event loop."""
    loop = asyncio.get_running_loop()
    found = _hubs.get(loop)
    if found is None:
        found = _hubs[loop] = Hub()
    return found


class Crowded(Exception):
    """A generation has as many followers in this process as it may have."""


class Hub:
    """Listens to one channel group. `group` is the `reply_to` of this process's jobs."""

    def __init__(self) -> None:
        self.group = f"web.{uuid.uuid4().hex}"
        self._followers: dict[str, set[Follower]] = {}
        self._listener: asyncio.Task[None] | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._is_blind = False  # the logs cannot be read, which was said

    def follow(
        self, id: str, after: int = 0, *, fresh: bool = False, max_queued: int | None = None
    ) -> Follower:
        """Follow a generation from the event after number `after`: `async with hub().follow(id) as f`.

        `fresh`: its job is submitted only inside the block, with this hub's group to reply to.
        `max_queued`: the events that are held for a reader who is slow; the log has the others.
        Entering raises Crowded, and RedisError or OSError while Redis is away.
        """
        return Follower(self, id, after, fresh, max_queued or MAX_QUEUED)

    async def listen(self) -> None:
        """Be subscribed."""
        async with self._starting:
            if self._listener is None or self._listener.done():
                layer = get_channel_layer()
                channel = await layer.new_channel()
                await layer.group_add(self.group, channel)
                self._listener = asyncio.create_task(self._receive(layer, channel))
            if self._watcher is None or self._watcher.done():
                self._watcher = asyncio.create_task(self._watch())

    async def _receive(self, layer: Any, channel: str) -> None:
        while True:
            try:
                message = await layer.receive(channel)
                for id, last, told in message["events"]:
                    if followers := self._followers.get(id):
                        events = [decode_event(event) for event in told]
                        for follower in followers:
                            follower.push(last, events)
            except Exception:
                logger.exception("A message of events could not be read; the log has them")
                await asyncio.sleep(RETRY_S)

    async def _watch(self) -> None:
        """Look into the logs of those who have heard nothing for some time."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            everyone = [follower for followers in self._followers.values() for follower in followers]
            silent = [follower for follower in everyone if follower.is_silent()]
            for start in range(0, len(silent), MOST_LOOKED_AT):
                await self._look(silent[start : start + MOST_LOOKED_AT])

    async def _look(self, silent: Sequence[Follower]) -> None:
        try:
            async with asyncio.timeout(LOG_TIMEOUT_S):
                found = await log.beyond([(follower.id, follower.known) for follower in silent])
        except AWAY as error:
            if not self._is_blind:
                logger.warning("The logs of %d silent generations cannot be read: %s", len(silent), error)
            self._is_blind = True
            return
        self._is_blind = False
        for index in found:
            silent[index].was_not_told()

    def add(self, follower: Follower) -> None:
        """Raises Crowded."""
        followers = self._followers.setdefault(follower.id, set())
        if len(followers) >= settings.BERTH.max_followers:
            raise Crowded
        followers.add(follower)

    def discard(self, follower: Follower) -> None:
        followers = self._followers.get(follower.id, set())
        followers.discard(follower)
        if not followers:
            self._followers.pop(follower.id, None)


class Follower:
    """One generation's events, each once and in order."""

    def __init__(self, hub: Hub, id: str, after: int, fresh: bool, max_queued: int) -> None:
        self.id = id
        self._max_queued = max_queued
        self._hub = hub
        self._fresh = fresh
        self._expected = after + 1  # the next number to be queued
        self._heard = after  # the highest number that is known to exist
        self._unread = not fresh  # the log may hold more than was heard of
        self._untold = (
            False  # it does, and no message came: perhaps of a worker that does not know of this one
        )
        self._silent_looks = 0
        self._queue: deque[tuple[int, Event]] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> Follower:
        await self._hub.listen()
        self._hub.add(self)
        if not self._fresh:
            try:
                await control.follow(self.id, self._hub.group)
            except BaseException:
                self._hub.discard(self)
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._hub.discard(self)
        if self._timer is not None:
            self._timer.cancel()

    async def next(self, deadline: float) -> tuple[int, Event] | None:
        """The next event and its number, or None once `deadline` (of `loop.time()`) has passed. Nothing moves
        the deadline.

        Events that Redis lost end the generation: the event is then a Failed (500).
        """
        loop = asyncio.get_running_loop()
        while not self._queue:
            if not (self._unread or self._heard >= self._expected):
                if loop.time() >= deadline:
                    return None
                await self._wait(deadline)
                continue
            answered = await self._read_log()
            if self._untold:
                self._untold = False
                await self._ask_to_be_told()
            if not (answered or self._queue):
                if loop.time() >= deadline:
                    return None
                await self._wait(min(deadline, loop.time() + RETRY_S))
        return self.ready()

    async def _ask_to_be_told(self) -> None:
        with contextlib.suppress(*AWAY):
            async with asyncio.timeout(LOG_TIMEOUT_S):
                await control.follow(self.id, self._hub.group)

    def ready(self) -> tuple[int, Event] | None:
        """The next event and its number if it has come already."""
        return self._queue.popleft() if self._queue else None

    @property
    def known(self) -> int:
        """The number of the last event that has come."""
        return self._expected - 1

    def is_silent(self) -> bool:
        """Whether it has heard nothing for some of the looks that are taken, of which this is one."""
        self._silent_looks += 1
        if self._waiter is None or self._silent_looks <= SILENT_LOOKS:
            return False
        self._silent_looks = 0
        return True

    def was_not_told(self) -> None:
        """The log has more than it heard of."""
        self._unread = self._untold = True
        self._wake()

    def begin_again(self) -> None:
        """Its events come anew, from number 1 on."""
        self._expected, self._heard, self._unread = 1, 0, True
        self._queue.clear()
        self._wake()

    def push(self, last: int, events: Sequence[Event]) -> None:
        """Take events that have come together; `last` is the number of the last one."""
        known = self._expected - 1 - (last - len(events))  # how many of them came before
        if known >= len(events):
            return
        self._heard = max(self._heard, last)
        self._silent_looks = 0
        if known >= 0:
            room = self._max_queued - len(self._queue)
            for event in events[known : known + room]:
                self._queue.append((self._expected, event))
                self._expected += 1
        self._wake()

    async def _wait(self, until: float) -> None:
        """Wait until `until` or until something comes, or shorter: a timer of an earlier wait may end it."""
        heed()
        loop = asyncio.get_running_loop()
        if self._timer is not None and until < self._timer.when():
            self._timer.cancel()
            self._timer = None
        if self._timer is None:  # one timer for many waits, since hardly any lasts until its end
            self._timer = loop.call_at(until, self._ring)
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _ring(self) -> None:
        self._timer = None
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _read_log(self) -> bool:
        """Queue what the log holds beyond the queue; False while Redis is away."""
        heard = self._heard  # an event is in the log before anybody hears of it
        try:
            async with asyncio.timeout(LOG_TIMEOUT_S):
                found = await log.read_entries(self.id, self._expected - 1, LOG_BATCH)
        except AWAY as error:
            logger.warning("The log of generation %s cannot be read: %s", self.id, error)
            return False
        for last, events in found:
            self.push(last, events)
        self._unread = len(found) == LOG_BATCH
        missing = heard >= self._expected and not self._unread
        broken = bool(found) and found[-1][0] >= self._expected
        if (missing or broken) and len(self._queue) < self._max_queued:
            logger.error("Events of generation %s are lost, from number %d on", self.id, self._expected)
            self.push(self._expected, [log.UNREADABLE])
        return True
