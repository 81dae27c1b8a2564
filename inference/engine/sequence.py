"""One generation's tokens and state, as the engine holds it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from .sampling import Sampler
from .text import TextAssembler


class State(enum.Enum):
    QUEUED = "queued"
    RESIDENT = "resident"
    PARKED = "parked"
    OVER = "over"


@dataclass(eq=False, slots=True)
class Sequence:
    """`tokens` is the prompt and what was generated; the first `cells` of them are in the KV cache.

    What is left (`pending`) is the prompt while it is being processed, then the one token sampled last.
    """

    id: str
    tokens: list[int]
    sampler: Sampler
    text: TextAssembler
    max_tokens: int  # -1: no bound but the context
    owner: str = ""
    priority: int = 0  # the lower goes first
    arrived_at: float = 0.0  # engine clock, seconds

    state: State = State.QUEUED
    started: bool = False  # it has had a slot
    slot: int = -1  # where it is resident, or was last
    cells: int = 0
    n_prompt: int = field(init=False)

    # parking
    saved: Any = None  # its KV state in host RAM; None while it has cells, or parked without any
    parked_at: float = 0.0
    cause: str = ""
    parks: int = 0
    parked_s: float = 0.0
    park_due: bool = False
    held: bool = False  # parked by hand: it returns only once it is released

    # timings, seconds on the engine clock; time parked is in neither
    active_since: float = 0.0
    prompt_s: float = 0.0
    decode_s: float = 0.0
    first_token_at: float = 0.0

    def __post_init__(self) -> None:
        self.n_prompt = len(self.tokens)

    @property
    def pending(self) -> int:
        """Tokens that the KV cache does not hold yet."""
        return len(self.tokens) - self.cells

    @property
    def generated(self) -> int:
        return len(self.tokens) - self.n_prompt

    @property
    def decoding(self) -> bool:
        return self.cells == len(self.tokens) - 1 and len(self.tokens) > self.n_prompt

    def pause_clock(self, now: float) -> None:
        """Add the time since `active_since` to the phase it belongs to."""
        if self.first_token_at:
            self.decode_s += now - self.active_since
        else:
            self.prompt_s += now - self.active_since
        self.active_since = now
