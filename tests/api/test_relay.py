"""Events that have come together go out together."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from inference import stream
from inference.messages import Accepted, Event, Failed, GenerationRequest, Started, Token
from inference.wire.errors import RequestError
from inference.wire.ids import Ids
from inference.wire.llamacpp import COMPLETION
from tests.broker.play import END

from .test_generate import PARK


class Come:
    """A generation's progress whose events have all come before anybody asked."""

    def __init__(self, *events: Event) -> None:
        self.state = "decode"
        self._events = deque(events)

    async def next(self, deadline: float) -> Event | None:
        return self.ready()

    def ready(self) -> Event | None:
        return self._events.popleft() if self._events else None


async def relayed(*events: Event) -> list[bytes]:
    """What is sent, message by message, of events that have come together."""
    sent: list[bytes] = []

    async def send(data: bytes) -> None:
        sent.append(data)

    request = GenerationRequest(prompt="hi")
    encoder = COMPLETION.encoder(request, {"prompt": "hi"}, id="1", model="tiny", created=0)
    come: Any = Come(*events)
    await stream.relay(come, encoder, Ids("1", shown=False), send, stream.Comments(0.0, None))
    return sent


async def test_events_that_have_come_together_are_sent_together_with_a_line_for_each():
    [sent] = await relayed(Accepted(3, 1, 9), Started(0), Token(1, "a"), Token(2, "b"), PARK, END)
    lines = sent.decode().split("\n\n")
    assert [line[:26] for line in lines[:3]] == [
        'data: {"index":0,"content"',
        'data: {"index":0,"content"',
        ": preempted",
    ]
    assert '"stop":true' in lines[3]


async def test_a_failure_that_has_come_together_with_text_is_told_in_the_stream():
    [sent] = await relayed(Accepted(3, 1, 9), Token(1, "a"), Failed(500, "server_error", "gone"))
    assert sent.count(b"data: ") == 2
    with pytest.raises(RequestError):
        await relayed(Accepted(3, 1, 9), Started(0), Failed(500, "server_error", "gone"))
