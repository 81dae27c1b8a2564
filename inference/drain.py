"""How a web process ends: it takes nothing new, and open streams have some time to come to their end."""

from __future__ import annotations

import asyncio
from weakref import WeakSet

from inference.wire.errors import RequestError

RESTARTING = RequestError(503, "", "The server is restarting. Send the request again in a moment.")
CUT_OFF = RequestError(
    503,
    "",
    "The server is restarting. Repeat the request with Last-Event-ID, the id of the last event that came, "
    "and the answer goes on from there.",
)

_has_begun = _is_over = False
_brief: WeakSet[asyncio.Task[object]] = WeakSet()


def begin() -> None:
    """From now on new work is refused."""
    global _has_begun
    _has_begun = True


def has_begun() -> bool:
    return _has_begun


def end() -> None:
    """The time is up: whatever is open is cut off."""
    global _is_over
    _is_over = True


def is_over() -> bool:
    return _is_over


def do_not_wait_for(task: asyncio.Task[object] | None) -> None:
    """Its client comes back by itself, so that it can be cut off at once."""
    if task is not None:
        _brief.add(task)


def is_waited_for(task: asyncio.Task[object]) -> bool:
    return task not in _brief
