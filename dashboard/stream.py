"""Following one generation for a chat page: from its log and its row to server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from uuid import UUID

from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.db import DatabaseError

from inference.broker import occupancy
from inference.broker.connect import AWAY
from inference.broker.hub import hub
from inference.messages import TERMINAL, Finished, Preempted
from inference.models import Chat, Generation

from . import events, operators
from .lost import Vigil
from .places import places
from .together import Together

KEEPALIVE_S = 2.0


@database_sync_to_async  # type: ignore[untyped-decorator]
def find(pk: UUID, user: User) -> Generation | None:
    """A generation of this person's chats."""
    theirs = Generation.objects.filter(message__chat__in=Chat.objects.of(user))
    return operators.noted(theirs.select_related("message").filter(pk=pk)).first()


async def follow(generation: Generation, user: User, after: int) -> AsyncGenerator[bytes, None]:
    """What comes after the event number `after`, up to the end. Never silent for longer than KEEPALIVE_S.

    Once all that was there before is told, CAUGHT_UP says so.
    Raises Crowded, and RedisError or OSError while Redis is away.
    """
    if generation.is_over:
        yield events.RETRY + events.of_row(generation)
        return
    loop = asyncio.get_running_loop()
    async with hub().follow(generation.id.hex, after) as follower:
        yield events.RETRY
        together, vigil = Together(follower), Vigil()
        told_of_absence, is_known, has_caught_up = False, after > 0, False
        deadline = loop.time()  # the first looks are at the log alone
        while True:
            found = await together.next(deadline)
            if found is not None:
                seq, event = found
                if has_caught_up:
                    deadline = loop.time() + KEEPALIVE_S
                told_of_absence, is_known = False, True
                vigil.heard()
                since = await _parked_since(generation) if isinstance(event, Preempted) else None
                is_stopped = isinstance(event, Finished) and event.stop_type == "cancelled"
                by_hand = is_stopped and await operators.ends(generation)
                if raw := events.event(generation.id.hex, seq, event, since, generation.max_tokens, by_hand):
                    yield raw
                if isinstance(event, TERMINAL):
                    return
                continue
            deadline = loop.time() + KEEPALIVE_S
            if not has_caught_up:
                has_caught_up = True
                yield events.CAUGHT_UP
                if is_known:
                    continue
            # Silence. Of one that a worker has the log tells all; of others it may have expired, or never be.
            if await _is_at_work(generation):
                vigil.heard()
                yield events.KEEPALIVE
                continue
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
                yield events.encode("waiting", {"reason": "no worker"})
            yield events.KEEPALIVE


async def _is_at_work(generation: Generation) -> bool:
    """Whether a live worker has it, as far as is known. All readers of a process share one look."""
    with contextlib.suppress(*AWAY):
        return generation.id.hex in await places()
    return False


async def _parked_since(generation: Generation) -> float | None:
    """Since when it has been parked, in seconds of the epoch; None if it is not shown as parked."""
    since = (await places()).get(generation.id.hex, {}).get("since")
    return None if since is None else float(since)
