"""What the encoders of all APIs have in common: which events are heard of, and as what."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from inference.messages import Event, Failed, Finished, Preempted, Resumed, Token
from inference.wire import sse
from inference.wire.api import Usage
from inference.wire.errors import RequestError


class EventEncoder(ABC):
    """Dispatches a generation's events; an API fills in the bytes."""

    def event(self, event: Event) -> bytes:
        if isinstance(event, Token):
            return self.token(event)
        if isinstance(event, Preempted):
            return sse.PREEMPTED
        if isinstance(event, Resumed):
            return sse.RESUMED
        if isinstance(event, Finished):
            return self.ended(event) + self.closing(Usage.of(event))
        if isinstance(event, Failed):
            return self.failure(RequestError.from_failed(event))
        return b""

    @abstractmethod
    def token(self, token: Token) -> bytes: ...

    @abstractmethod
    def ended(self, finished: Finished) -> bytes: ...

    @abstractmethod
    def closing(self, usage: Usage) -> bytes: ...

    @abstractmethod
    def failure(self, error: RequestError) -> bytes: ...

    @abstractmethod
    def merged(self, results: Sequence[dict[str, Any]], usage: Usage) -> Any: ...


def outcome(events: Sequence[Event]) -> tuple[str, Finished]:
    """A generation's text and last event; raises RequestError if it failed, ValueError if it goes on."""
    last = events[-1] if events else None
    if isinstance(last, Failed):
        raise RequestError.from_failed(last)
    if not isinstance(last, Finished):
        raise ValueError("the events of a generation end in Finished or Failed")
    return "".join([event.text for event in events if isinstance(event, Token)]) + last.text, last
