"""Whoever is shut out while a stream of his runs: the stream ends within seconds.

Each web process looks after its own streams: every few seconds one query tells which of the keys and people
behind them may still be served. So nothing has to be told to anybody, and nothing can be missed: a key may
be revoked, expire or be deleted, by whatever means. While the database is away, streams go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.db import Error
from django.db.models import QuerySet

from inference.broker.control import GIVE_UP_S
from inference.models import ApiKey
from inference.wire.errors import RequestError

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 2.0
AGAIN_S = GIVE_UP_S + 2.0  # after which a stream that has not ended is cancelled again
REASONS = {
    "key": "This API key may not be used any more.",
    "user": "You have been signed out.",
    "staff": "You are not staff any more.",
}


Kind = Literal["key", "user", "staff"]


class Grant(NamedTuple):
    """What a stream depends on: that a key is usable, that a person is active, or is active and staff."""

    kind: Kind
    id: int


class Revoked(RequestError):
    """The grant of a stream does not hold any more: 401."""


class _Stream:
    """A task that runs as long as its grant holds."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        self._others = task.cancelling()
        self._cancels = 0
        self._cancel_at = 0.0

    def revoke(self) -> None:
        """Cancel it, and again when it has not ended for long: a library can swallow a cancellation."""
        now = asyncio.get_running_loop().time()
        if now >= self._cancel_at:
            self._cancel_at = now + AGAIN_S
            self._cancels += 1
            self._task.cancel()

    def was_told(self) -> bool:
        """Whether the cancellation that has come is its revocation alone."""
        for _ in range(self._cancels):
            self._task.uncancel()
        return self._cancels > 0 and self._task.cancelling() <= self._others


class Streams:
    """Those of one event loop, by their grants."""

    def __init__(self) -> None:
        self._of: dict[Grant, set[_Stream]] = {}
        self._looking: asyncio.Task[None] | None = None

    def add(self, grant: Grant, stream: _Stream) -> None:
        self._of.setdefault(grant, set()).add(stream)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())

    def discard(self, grant: Grant, stream: _Stream) -> None:
        self._of[grant].discard(stream)
        if not self._of[grant]:
            del self._of[grant]

    async def _look(self) -> None:
        """Until there are none."""
        while self._of:
            await asyncio.sleep(LOOK_EVERY_S)
            asked = set(self._of)
            try:
                holding = await _ask(asked)
            except Error as error:
                logger.warning("Keys of running streams can't be checked, the streams go on: %s", error)
                continue
            for grant in asked - holding:
                for stream in self._of.get(grant, ()):
                    stream.revoke()


_streams: WeakKeyDictionary[asyncio.AbstractEventLoop, Streams] = WeakKeyDictionary()


@asynccontextmanager
async def as_long_as(grant: Grant | None) -> AsyncIterator[None]:
    """Run the block while this holds; then it is cancelled, and Revoked is raised. None always holds."""
    if grant is None:
        yield
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    streams = _streams.get(loop) or _streams.setdefault(loop, Streams())
    stream = _Stream(task)
    streams.add(grant, stream)
    try:
        yield
    except asyncio.CancelledError:
        if stream.was_told():
            raise Revoked(401, "", REASONS[grant.kind]) from None
        raise
    finally:
        streams.discard(grant, stream)


def _holding(grants: Collection[Grant]) -> set[Grant]:
    people = User.objects.filter(is_active=True)
    rows: dict[Kind, QuerySet[Any]] = {
        "key": ApiKey.objects.usable(),
        "user": people,
        "staff": people.filter(is_staff=True),
    }
    holding: set[Grant] = set()
    for kind, found in rows.items():
        if ids := [grant.id for grant in grants if grant.kind == kind]:
            holding |= {Grant(kind, pk) for pk in found.filter(pk__in=ids).values_list("pk", flat=True)}
    return holding


# Not in the one thread of Django's views, which a slow page can hold up.
_ask = database_sync_to_async(_holding, thread_sensitive=False)
