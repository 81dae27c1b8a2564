"""Following one generation for a chat page: from its log and its row to server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from uuid import UUID

from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.db import DatabaseError

from inference.broker import occupancy
from inference.broker.hub import hub
from inference.messages import TERMINAL, Preempted
from inference.models import Chat, Generation

from . import events
from .lost import Vigil

KEEPALIVE_S = 2.0


@database_sync_to_async  # type: ignore[untyped-decorator]
def find(pk: UUID, user: User) -> Generation | None:
    """A generation of this person's chats."""
    theirs = Generation.objects.filter(message__chat__in=Chat.objects.of(user))
    return theirs.select_related("message").filter(pk=pk).first()


async def follow(generation: Generation, user: User, after: int) -> AsyncGenerator[bytes, None]:
    """What comes after the event number `after`, up to the end. Never silent for longer than KEEPALIVE_S.

    Raises Crowded, and RedisError or OSError while Redis is away.
    """
    if generation.is_over:
        yield events.RETRY + events.of_row(generation)
        return
    loop = asyncio.get_running_loop()
    async with hub().follow(generation.id.hex, after) as follower:
        yield events.RETRY
        told_of_absence, vigil = False, Vigil()
        deadline = loop.time()  # the first look is at the log alone
        while True:
            found = await follower.next(deadline)
            deadline = loop.time() + KEEPALIVE_S
            if found is not None:
                seq, event = found
                told_of_absence = False
                vigil.heard()
                since = await _parked_since(generation) if isinstance(event, Preempted) else None
                if raw := events.event(generation.id.hex, seq, event, since, generation.max_tokens):
                    yield raw
                if isinstance(event, TERMINAL):
                    return
                continue
            # Silence. The log may have expired, or never come to be.
            try:
                row = await find(generation.pk, user)
            except DatabaseError:
                row = generation  # it is away, and tokens flow without it
            if row is None:
                return
            if not row.is_over and await vigil.look(row):
                follower.begin_again()
                yield events.text_of(row)
            if row.is_over:
                yield events.of_row(row)
                return
            if not told_of_absence and not await occupancy.get_all():
                told_of_absence = True
                yield events.encode("waiting", {"reason": events.NO_WORKER})
            yield events.KEEPALIVE


async def _parked_since(generation: Generation) -> float | None:
    """Since when it has been parked, in seconds of the epoch; None when it is parked no longer."""
    for snapshot in await occupancy.get_all():
        for parked in snapshot["parked"]:
            if parked["generation"] == generation.id.hex:
                return float(parked["since"])
    return None
