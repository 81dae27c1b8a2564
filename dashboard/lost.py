"""Answers that nobody has any more: the web process died before it had asked for them, or Redis lost its data
and the worker died with what it knew."""

from __future__ import annotations

import asyncio
import contextlib

from channels.db import database_sync_to_async
from django.db import DatabaseError

from inference.broker import occupancy
from inference.broker.connect import AWAY
from inference.models import Generation
from inference.stream import AGAIN_AFTER, LOST_AFTER

from . import conversation


class Vigil:
    """One reader's, who hears nothing: how long nobody has known of the generation, and what is done then."""

    def __init__(self) -> None:
        self._lost_since: float | None = None

    def heard(self) -> None:
        """There was an event, or a worker has it."""
        self._lost_since = None

    async def look(self, generation: Generation) -> bool:
        """Look once. True: it is asked for again, and its events come anew, from number 1 on. One that had
        begun fails after some time, and its row says so."""
        with contextlib.suppress(*AWAY, DatabaseError):
            if not await _is_lost(generation):
                self._lost_since = None
                return False
            now = asyncio.get_running_loop().time()
            self._lost_since = self._lost_since or now
            has_begun = generation.started_at is not None
            if now - self._lost_since >= (LOST_AFTER if has_begun else AGAIN_AFTER):
                return bool(await _mend(generation))
        return False


async def _is_lost(generation: Generation) -> bool:
    workers = await occupancy.overview()  # of which all readers share one
    if not workers.alive or generation.id.hex in workers.generations:
        return False
    return bool(await _is_lost_now(generation))


_is_lost_now = database_sync_to_async(conversation.is_lost)
_mend = database_sync_to_async(conversation.mend)
