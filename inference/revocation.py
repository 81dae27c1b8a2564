"""The streams of whoever is shut out end at once.

Each web process checks its own streams: every two seconds, and whenever the bell rings, it asks which of
the keys, people and sessions behind all of them may still be served. So nothing can be missed: a key may be
revoked, expire or be deleted, a session end, by whatever means. While the database is away, streams go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import Error
from django.utils import timezone

from inference.broker import bell
from inference.broker.control import GIVE_UP_S
from inference.models import ApiKey
from inference.tasks import end
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
    """What a stream depends on: that a key is usable, that a person is active, or is active and staff; and on
    the session by which a browser has it, if there is one."""

    kind: Kind
    id: int
    session: str = ""  # its key
    hash: str = ""  # of the password with which it was begun, as sessions keep it

    @property
    def whose(self) -> Grant:
        """The same without the session."""
        return Grant(self.kind, self.id)


def of_session(scope: Mapping[str, Any], kind: Literal["user", "staff"] = "user") -> Grant:
    """What a connection depends on that somebody has who is signed in."""
    user, session = scope["user"].pk, scope.get("session")
    if session is None:
        return Grant(kind, user)
    return Grant(kind, user, session.session_key or "", session.get(HASH_SESSION_KEY, ""))


class Revoked(RequestError):
    """The grant of a stream does not hold any more: 401.

    `signed_out`: that is so for its session alone. Its person may be there again, with another one.
    """

    def __init__(self, kind: Kind, signed_out: bool) -> None:
        super().__init__(401, "", REASONS["user" if signed_out else kind])
        self.signed_out = signed_out


class _Stream:
    """A task that runs as long as its grant holds."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        self._others = task.cancelling()
        self._cancels = 0
        self._cancel_at = 0.0
        self.signed_out = False

    def revoke(self, signed_out: bool) -> None:
        """Cancel it, and again when it has not ended for long: a library can swallow a cancellation."""
        self.signed_out = signed_out
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
        self._rung = asyncio.Event()

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
        hearing = asyncio.create_task(self._hear())
        try:
            while self._of:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_EVERY_S):
                        await self._rung.wait()
                self._rung.clear()
                await self._revoke()
        finally:
            await end([hearing])

    async def _hear(self) -> None:
        async for _ in bell.rings():
            self._rung.set()

    async def _revoke(self) -> None:
        asked = set(self._of)
        try:
            holding = await _ask(asked)
        except Error as error:
            logger.warning("Keys of running streams can't be checked, the streams go on: %s", error)
            return
        for grant in asked - holding:
            for stream in self._of.get(grant, ()):
                stream.revoke(signed_out=grant.whose in holding)


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
            raise Revoked(grant.kind, stream.signed_out) from None
        raise
    finally:
        streams.discard(grant, stream)


def _holding(grants: Collection[Grant]) -> set[Grant]:
    """Those that hold, and with each of a session also its `whose` if that does."""
    keys = {grant.id for grant in grants if grant.kind == "key"}
    found = ApiKey.objects.usable().filter(pk__in=keys).values_list("pk", flat=True) if keys else ()
    holding = {Grant("key", pk) for pk in found}
    if ids := {grant.id for grant in grants if grant.kind != "key"}:
        people = {user.pk: user for user in User.objects.filter(is_active=True, pk__in=ids)}
        sessions = _sessions({grant.session for grant in grants if grant.session})
        for grant in grants:
            user = None if grant.kind == "key" else people.get(grant.id)
            if user is None or (grant.kind == "staff" and not user.is_staff):
                continue
            holding.add(grant.whose)
            if grant.session in sessions and grant.hash == user.get_session_auth_hash():
                holding.add(grant)
    return holding


def _sessions(keys: set[str]) -> set[str]:
    """Those of these that have not ended."""
    if not keys:
        return set()
    alive = Session.objects.filter(session_key__in=keys, expire_date__gt=timezone.now())
    return set(alive.values_list("session_key", flat=True))


# Not in the one thread of Django's views, which a slow page can hold up.
_ask = database_sync_to_async(_holding, thread_sensitive=False)
