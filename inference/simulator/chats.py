"""The chats of a simulation: numbers of tokens are all that the policy sees of one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Chat:
    """A sequence without its text."""

    id: int
    prompt: int
    answer: int
    priority: int = 0
    arrived: float = 0.0

    tokens: int = field(init=False)  # the prompt and what was generated
    cells: int = 0
    saved: int = 0  # cells in host RAM
    resident: bool = False
    moving: bool = False
    slot: int = -1
    since: float = 0.0
    parked_at: float = 0.0
    parks: int = 0
    park_due: bool = False
    held: bool = False
    outcome: str = ""  # "finished", "cancelled" or the reason of a failure
    first_token_at: float = math.nan
    ended_at: float = math.nan
    longest_wait: float = 0.0

    def __post_init__(self) -> None:
        self.tokens = self.prompt

    @property
    def pending(self) -> int:
        return self.tokens - self.cells

    @property
    def decoding(self) -> bool:
        return self.resident and self.cells == self.tokens - 1 and self.tokens > self.prompt


class Reserved(Chat):
    """A chat that takes the cells of its whole answer when it is admitted, so that nobody is ever parked."""

    __slots__ = ()

    @property
    def pending(self) -> int:
        return self.prompt + self.answer - self.cells
