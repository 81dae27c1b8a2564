"""A generation's events as the chat reads them: server-sent, with ids `<generation>.<sequence number>`."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from inference.messages import Event, Failed, Finished, Preempted, Resumed, Started, Token
from inference.models import Generation

from . import conversation, operators, wording

KEEPALIVE = b": keepalive\n\n"
CAUGHT_UP = b"event: now\ndata: {}\n\n"  # what came before is past
RETRY = b"retry: 1000\n\n"  # milliseconds after which a browser comes back

REASONS = {"cancelled": Generation.FinishReason.CANCELLED, "limit": Generation.FinishReason.LENGTH}


def encode(kind: str, data: Any, id: str = "") -> bytes:
    line = f"id: {id}\n" if id else ""
    return f"{line}event: {kind}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def number(generation: str, id: bytes) -> int:
    """The sequence number in an id; 0, the beginning, for one that is none of this generation's."""
    found = re.fullmatch(rf"{generation}\.(\d{{1,10}})".encode(), id)
    return int(found[1]) if found else 0


def event(
    generation: str,
    seq: int,
    event: Event,
    parked_since: float | None = None,
    max_tokens: int | None = None,
    by_operator: bool = False,
) -> bytes:
    """One event of the generation with this id, which may write `max_tokens`; b"" for a token that shows no
    text. `parked_since` is of the epoch. `by_operator`: who has cancelled it."""
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
            ended = Generation(
                state=Generation.State.FINISHED,
                finish_reason=REASONS.get(event.stop_type, ""),
                completion_tokens=event.completion_tokens,
                max_tokens=max_tokens,
            )
            data = {"text": event.text, **_end(ended, by_operator)}
        case Failed():
            data = _end(Generation(state=Generation.State.FAILED, error=event.message))
        case _:
            data = {}
    return encode(event.kind, data, f"{generation}.{seq}")


def _end(generation: Generation, by_operator: bool = False) -> dict[str, Any]:
    """What is told of a generation that is over: the line under its answer, what to do with and without a
    text, how it looks, and whether it could go on."""
    return {
        "note": wording.note(generation, by_operator=by_operator),
        "advice": wording.advice(generation, has_text=True, by_operator=by_operator),
        "advice_without_text": wording.advice(generation, has_text=False, by_operator=by_operator),
        "look": wording.look(generation),
        "unfinished": conversation.is_unfinished(generation),
    }


def of_row(generation: Generation) -> bytes:
    """A generation that is over, told from its row: the whole text, then how it ended."""
    kind = "failed" if generation.state == Generation.State.FAILED else "finished"
    return text_of(generation) + encode(kind, _end(generation, operators.was_ended(generation)))


def text_of(generation: Generation) -> bytes:
    """The text that the database has, in place of what was told."""
    return encode("text", generation.message.content if generation.message else "")
