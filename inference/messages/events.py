"""What workers tell of a generation: events, and how they travel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from .reading import as_dict, read


@dataclass(frozen=True, slots=True)
class Accepted:
    """The request passed every check; nothing of it is generated yet."""

    kind: ClassVar[str] = "accepted"
    prompt_tokens: int
    seed: int  # the one that is used
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Started:
    """It has a slot and its prompt is being processed."""

    kind: ClassVar[str] = "started"
    slot: int


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token. `text` can be empty: half a character, or text that may be a stop string."""

    kind: ClassVar[str] = "token"
    token: int
    text: str


@dataclass(frozen=True, slots=True)
class Preempted:
    kind: ClassVar[str] = "preempted"
    slot: int  # -1: it had none yet
    # pressure, admission, rotation, priority, hand, forced, decode: no cells were found, or worker: it died
    cause: str
    cells: int
    bytes: int  # of host RAM taken
    method: str = "swap"  # or "recompute": the cells were dropped and will be computed again


@dataclass(frozen=True, slots=True)
class Resumed:
    kind: ClassVar[str] = "resumed"
    slot: int
    waited: float  # seconds
    method: str = ""  # how its state came back, which can be another way than its park promised


@dataclass(frozen=True, slots=True)
class Released:
    """It was held by hand, and waits for its turn to be resumed."""

    kind: ClassVar[str] = "released"


@dataclass(frozen=True, slots=True)
class Prioritised:
    """An operator has changed what goes first."""

    kind: ClassVar[str] = "prioritised"
    priority: int


@dataclass(frozen=True, slots=True)
class Timings:
    """llama-server's timings, in milliseconds; time parked is in neither figure."""

    cache_n: int = 0
    prompt_n: int = 0
    prompt_ms: float = 0.0
    predicted_n: int = 0
    predicted_ms: float = 0.0

    def to_dict(self) -> dict[str, float]:
        def per_token(ms: float, n: int) -> float:
            return ms / n if n else 0.0

        def per_second(ms: float, n: int) -> float:
            return 1e3 * n / ms if ms else 0.0

        return {
            "cache_n": self.cache_n,
            "prompt_n": self.prompt_n,
            "prompt_ms": self.prompt_ms,
            "prompt_per_token_ms": per_token(self.prompt_ms, self.prompt_n),
            "prompt_per_second": per_second(self.prompt_ms, self.prompt_n),
            "predicted_n": self.predicted_n,
            "predicted_ms": self.predicted_ms,
            "predicted_per_token_ms": per_token(self.predicted_ms, self.predicted_n),
            "predicted_per_second": per_second(self.predicted_ms, self.predicted_n),
        }


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a generation that went well. `text` is what was held back and is now certain."""

    kind: ClassVar[str] = "finished"
    stop_type: Literal["eos", "word", "limit", "cancelled"]
    stopping_word: str
    text: str
    prompt_tokens: int
    completion_tokens: int
    truncated: bool  # the context was full
    slot: int
    timings: Timings
    parks: int
    parked_s: float
    ttft_s: float  # from acceptance by the worker to the first token


@dataclass(frozen=True, slots=True)
class Failed:
    """The last event of a generation that was refused (before Accepted) or broke (after it)."""

    kind: ClassVar[str] = "failed"
    status: int  # the HTTP status it deserves
    type: str  # llama-server's error types: invalid_request_error, exceed_context_size_error, ...
    message: str
    extra: dict[str, Any] = field(default_factory=dict)  # such as n_prompt_tokens and n_ctx


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to a job that is not a generation."""

    kind: ClassVar[str] = "answer"
    data: dict[str, Any]


Event = Accepted | Started | Token | Preempted | Released | Resumed | Prioritised | Finished | Failed | Answer
TERMINAL = (Finished, Failed, Answer)
_TYPES: dict[str, type[Any]] = {
    c.kind: c
    for c in (
        Accepted,
        Started,
        Token,
        Preempted,
        Released,
        Resumed,
        Prioritised,
        Finished,
        Failed,
        Answer,
    )
}


def encode_event(event: Event) -> list[Any]:
    """An event as a short list that JSON and msgpack can carry."""
    if type(event) is Token:  # the hot one
        return ["token", event.token, event.text]
    if type(event) is Finished:
        return [event.kind, {**as_dict(event), "timings": as_dict(event.timings)}]
    return [event.kind, as_dict(event)]


def decode_event(data: Any) -> Event:
    """The event in such a list. Raises ValueError for what is none."""
    try:
        kind = data[0]
        if kind == "token":
            _, token, text = data
            if type(token) is int and type(text) is str:
                return Token(token, text)
        elif kind in _TYPES:
            _, values = data
            if kind == "finished":
                values = {**values, "timings": read(Timings, values["timings"])}
            return read(_TYPES[kind], values)  # type: ignore[no-any-return]
    except (TypeError, LookupError) as error:
        raise ValueError(f"no event: {error!r}") from error
    raise ValueError(f"no event: {data!r:.80}")
