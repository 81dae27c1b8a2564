"""What every API of this package offers its consumer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from inference.messages import NORMAL, Event, GenerationRequest
from inference.wire.errors import RequestError


class Defaults(NamedTuple):
    """What the operator chose for requests that do not say."""

    temperature: float = 0.8
    seed: int = -1
    max_tokens: int = -1
    model: str = ""
    priority: int = NORMAL


class Encoder(Protocol):
    """Turns the events of one generation into the bytes of one API. Give it each event once, in order."""

    def event(self, event: Event) -> bytes:
        """The SSE bytes that this event adds; b"" for none."""
        ...

    def result(self, events: Sequence[Event]) -> dict[str, Any]:
        """The non-streaming answer's body, from all events; raises RequestError if they end in Failed."""
        ...

    def failure(self, error: RequestError) -> bytes:
        """An error inside an open stream."""
        ...


class Api(Protocol):
    """One endpoint's format."""

    @property
    def name(self) -> str:
        """A short name for operators: chat, completions or completion."""
        ...

    def parse(self, body: Any, defaults: Defaults) -> GenerationRequest:
        """The request that a decoded JSON body asks for; raises RequestError."""
        ...

    def encoder(
        self, request: GenerationRequest, body: dict[str, Any], *, id: str, model: str, created: int
    ) -> Encoder:
        """`body` is the one that was parsed; `created` is in seconds since the epoch."""
        ...

    def error(self, error: RequestError) -> dict[str, Any]:
        """The JSON body of an error."""
        ...
