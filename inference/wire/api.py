"""What every API of this package offers its consumer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from inference.messages import NORMAL, Event, Finished, GenerationRequest
from inference.wire.choices import MAX_CHOICES
from inference.wire.errors import RequestError


class Defaults(NamedTuple):
    """What the operator chose for requests that do not say."""

    temperature: float = 0.8
    seed: int = -1
    max_tokens: int = -1
    model: str = ""
    priority: int = NORMAL
    keep: int = 0
    max_choices: int = MAX_CHOICES
    longest: int = -1  # tokens of an answer, whatever the request says; -1: up to the context


class Usage(NamedTuple):
    """Tokens of one generation or of several."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int

    @classmethod
    def of(cls, finished: Finished) -> Usage:
        return cls(finished.prompt_tokens, finished.completion_tokens, finished.timings.cache_n)


class Encoder(Protocol):
    """Turns the events of one generation into the bytes of one API. Give it each event once, in order."""

    def event(self, event: Event) -> bytes:
        """The SSE bytes that this event adds; b"" for none."""

    def result(self, events: Sequence[Event]) -> dict[str, Any]:
        """The non-streaming answer's body, from all events; raises RequestError if they end in Failed."""

    def failure(self, error: RequestError) -> bytes:
        """An error inside an open stream."""

    def ended(self, finished: Finished) -> bytes:
        """The part of a Finished's bytes that is its own choice's."""

    def closing(self, usage: Usage) -> bytes:
        """The rest of them: what a stream closes with, once for all of its choices."""

    def merged(self, results: Sequence[dict[str, Any]], usage: Usage) -> Any:
        """One body of the results of several choices."""


class Api(Protocol):
    """One endpoint's format."""

    @property
    def name(self) -> str:
        """A short name for operators: chat/completions, completions or completion."""

    def parse(self, body: Any, defaults: Defaults) -> GenerationRequest:
        """The request that a decoded JSON body asks for; raises RequestError."""

    def encoder(
        self,
        request: GenerationRequest,
        body: dict[str, Any],
        *,
        id: str,
        model: str,
        created: int,
        index: int = 0,
    ) -> Encoder:
        """`body` is the one that was parsed; `created` is in seconds since the epoch.

        `request` is for one choice, the one of this index among its siblings.
        """

    def error(self, error: RequestError) -> dict[str, Any]:
        """The JSON body of an error."""
