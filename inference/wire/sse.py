"""Server-sent events: the comments that keep a stream alive, and `data:` lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

PREEMPTED = b": preempted\n\n"
RESUMED = b": resumed\n\n"
PREEMPT_KEEPALIVE = b": preempt-keepalive\n\n"
DONE = b"data: [DONE]\n\n"

_KEEPALIVES = {
    "parked": PREEMPT_KEEPALIVE,
    "queued": b": queued\n\n",
    "prefill": b": prefill\n\n",
}
_PING = b": ping\n\n"

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
dumps: Callable[[Any], str] = _json.encode  # of a string alone it is a single call into C


def keepalive(state: str) -> bytes:
    """The comment for a stream that has nothing else to say: parked, queued, prefill, or any other state."""
    return _KEEPALIVES.get(state, _PING)


def of_choice(notice: bytes, index: int) -> bytes:
    """A notice of one choice among several: `: preempted 0`."""
    return b"%s %d\n\n" % (notice.rstrip(), index)


def data(obj: Any) -> bytes:
    """One `data:` event that holds `obj` as JSON."""
    return f"data: {dumps(obj)}\n\n".encode()


class TextData:
    """`data(chunk(text))` for many texts: all but the text is encoded once.

    The text must be the last string of the chunk that a client could have chosen.
    """

    def __init__(self, chunk: Callable[[str], dict[str, Any]]) -> None:
        hole = "\0"
        before, _, after = dumps(chunk(hole)).rpartition(dumps(hole))
        self._before, self._after = f"data: {before}", f"{after}\n\n"

    def __call__(self, text: str) -> bytes:
        return f"{self._before}{dumps(text)}{self._after}".encode()
