"""A generation's events as the chat reads them: server-sent, with ids `<generation>.<sequence number>`."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from inference.messages import Event, Failed, Finished, Preempted, Resumed, Started, Token
from inference.models import Generation

from . import wording

KEEPALIVE = b": keepalive\n\n"
RETRY = b"retry: 1000\n\n"  # milliseconds after which a browser comes back
NO_WORKER = "The model is not running. Your message is kept and will be answered when it is back."


def encode(kind: str, data: Any, id: str = "") -> bytes:
    line = f"id: {id}\n" if id else ""
    return f"{line}event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def number(generation: str, id: bytes) -> int:
    """The sequence number in an id; 0, the beginning, for one that is none of this generation's."""
    found = re.fullmatch(rf"{generation}\.(\d{{1,10}})".encode(), id)
    return int(found[1]) if found else 0


def event(generation: str, seq: int, event: Event, parked_since: float | None = None) -> bytes:
    """One event of the generation with this id; b"" for a token that shows no text. `parked_since` is of the
    epoch."""
    match event:
        case Token(text=""):
            return b""
        case Token():
            data: Any = event.text
        case Preempted():
            now = time.time()
            since = parked_since or now
            # The wait is told too, since the browser's clock may differ.
            data = {"since": since, "waited": max(0.0, now - since), "cause": event.cause}
        case Resumed():
            data = {"waited": event.waited}
        case Started():
            data = {"slot": event.slot}
        case Finished():
            data = {"text": event.text, "note": _ending(event)}
        case Failed():
            data = {"note": wording.failure(event.message)}
        case _:
            data = {}
    return encode(event.kind, data, f"{generation}.{seq}")


def _ending(event: Finished) -> str:
    reasons = {"cancelled": Generation.FinishReason.CANCELLED, "limit": Generation.FinishReason.LENGTH}
    return wording.ending(reasons.get(event.stop_type, ""), event.completion_tokens)


def of_row(generation: Generation) -> bytes:
    """A generation that is over, told from its row: the whole text, then how it ended."""
    text = generation.message.content if generation.message else ""
    kind = "failed" if generation.state == Generation.State.FAILED else "finished"
    return encode("text", text) + encode(kind, {"note": wording.note(generation)})
