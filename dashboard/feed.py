"""What a person's open pages are told as it happens: which of their chats have changed, and what goes on in
those that are being answered."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from functools import partial

from channels.db import database_sync_to_async
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from django.db.models import QuerySet

from inference.broker import people
from inference.models import Chat, Generation

from .places import State, places

AT_LEAST_S = 0.25  # between two messages to a page
LOOK_S = 0.5  # between two looks at chats that wait, are read or are paused
WRITING_S = 1.0  # and at those that are written
AT_MOST_S = 2.0  # and when there is nothing to look at, so that the page knows that it is connected
ROWS_S = 1.0  # between two looks at the rows of generations that no worker has

_GOING = [state for state in Generation.State if state not in Generation.OVER]
_ROW_STATES: dict[str, str] = {Generation.State.RUNNING: "writing", Generation.State.PARKED: "paused"}


def changed(user: User, chat: Chat | int) -> None:
    """Have every open page of this person show the chat (a row, or the primary key of one that is gone) anew.

    Call it after each write. Inside a transaction it waits for the commit; while Redis is away it does
    nothing.
    """
    pk = chat if isinstance(chat, int) else chat.pk
    transaction.on_commit(partial(people.changed_sync, user.pk, pk), robust=True)


class Feed:
    """For one page of one person. `since` is where the changes ended that the page shows already."""

    def __init__(self, person: int, since: str = "") -> None:
        self._person = person
        self._since = since if people.is_place(since) else ""
        self._is_told = True  # that something may have changed
        self._rows: dict[str, tuple[int, str]] = {}  # generation on its way -> its chat and its row's state
        self._rows_at = 0.0
        self._shown: dict[str, State] | None = None  # chat -> its state, as the page knows it
        self._told_at = 0.0

    def tell(self) -> None:
        """Something may have changed."""
        self._is_told = True

    async def news(self) -> str:
        """{"chats": {chat: state}, "changed": [chat, ...], "since": place, "now": seconds of the epoch}.

        As JSON; "" when there is nothing to say. Raises RedisError or OSError.
        """
        now = asyncio.get_running_loop().time()
        is_beat = now - self._told_at >= AT_MOST_S
        changes = await self._changes() if self._is_told or is_beat else []
        chats = await self._chats(now, bool(changes))
        if not (changes or chats != self._shown or is_beat):
            return ""
        self._shown, self._told_at = chats, now
        news = {"chats": chats, "changed": changes, "since": self._since, "now": time.time()}
        return json.dumps(news, separators=(",", ":"))

    async def _changes(self) -> list[int]:
        """The chats that have changed since the last look."""
        self._is_told = False
        if not self._since:
            self._since = await people.last(self._person)
            return []
        self._since, changes = await people.since(self._person, self._since)
        return changes

    async def _chats(self, now: float, have_changed: bool) -> dict[str, State]:
        """The chats that are being answered."""
        found = await places() if self._rows else {}
        is_missing = not self._rows.keys() <= found.keys()  # it is over, or no worker has it yet
        if self._shown is None or have_changed or (is_missing and now - self._rows_at >= ROWS_S):
            self._rows_at = now
            with contextlib.suppress(DatabaseError):  # it is away, and what is known goes on
                self._rows = await _on_the_way(self._person)
            found = await places() if self._rows else {}
        chats: dict[str, State] = {}
        for generation, (chat, row_state) in self._rows.items():
            state = found.get(generation) or {"state": _ROW_STATES.get(row_state, "waiting")}
            chats[str(chat)] = {"generation": generation, **state}
        return chats

    def pause_s(self) -> float:
        """Seconds until it is worth looking again if nothing is heard."""
        states = {chat["state"] for chat in (self._shown or {}).values()}
        return LOOK_S if states - {"writing"} else WRITING_S if states else AT_MOST_S


def under_way(person: int) -> QuerySet[Generation]:
    """The answers that come into this person's chats just now."""
    return Generation.objects.filter(
        state__in=_GOING, user=person, message__chat__user=person, message__chat__deleted_at=None
    )


def _rows(person: int) -> dict[str, tuple[int, str]]:
    rows = under_way(person).values_list("pk", "message__chat", "state")
    return {pk.hex: (chat, state) for pk, chat, state in rows}


# Not in the one thread of Django's views, which a slow page can hold up.
_on_the_way = database_sync_to_async(_rows, thread_sensitive=False)
