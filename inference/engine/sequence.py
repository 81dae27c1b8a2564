"""One generation's tokens and state, as the engine holds it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .sampling import Sampler
from .text import TextAssembler

if TYPE_CHECKING:
    from .llama import SavedState
    from .parking import HostCopy


class State(enum.Enum):
    QUEUED = "queued"
    RESIDENT = "resident"
    LEAVING = "leaving"  # parked, but some of its cells are still to be copied and released
    PARKED = "parked"
    RETURNING = "returning"  # it has a slot again, and some of its cells are still to come
    OVER = "over"


@dataclass(eq=False, slots=True)
class Sequence:
    """`tokens` is the prompt and what was generated; the first `cells` of them are in the KV cache.

    What is left (`pending`) is in host RAM while it is parked, else to be computed: the prompt while it
    is being processed, then the one token sampled last.
    """

    id: str
    tokens: list[int]
    sampler: Sampler
    text: TextAssembler
    max_tokens: int  # -1: no bound but the context
    owner: str = ""
    account: str = ""  # the prefix cache is shared within it
    use_cache: bool = True  # the prefix cache
    priority: int = 0  # lower goes first
    n_keep: int = 0  # tokens that a context shift leaves at the start; -1: the prompt
    n_discard: int = 0  # tokens that a context shift forgets; 0: half of the others
    arrived_at: float = 0.0  # engine clock, seconds

    state: State = State.QUEUED
    started: bool = False  # it has had a slot
    slot: int = -1  # where it is resident, or was last
    cells: int = 0
    since: float = 0.0  # engine clock: when it got its place or, without one, began to wait
    n_prompt: int = field(init=False)
    shifted: int = 0  # tokens that context shifts took out of `tokens`

    # the prefix cache
    keys: list[bytes] = field(default_factory=list)  # of its prompt's blocks
    known: list[SavedState] = field(default_factory=list)  # its next blocks, the first last: they are loaded
    saved: int = 0  # blocks that need not be saved
    lone: int = 0  # cells that are, to the last bit, as if it had been alone from its start
    cached: int = 0  # tokens of the prompt that were not computed

    # parking
    copy: HostCopy | None = None  # of its KV state in host RAM; it can outlast a park
    swapped: int = 0  # cells that it had when it was parked by swap
    redo: int = 0  # cells that it had when it was parked by recompute, until they are computed again
    parked_at: float = 0.0
    cause: str = ""
    method: str = ""
    parks: int = 0
    copy_s: float = 0.0  # of the transfer that runs
    parked_s: float = 0.0
    park_due: bool = False
    held: bool = False  # by an operator: it does not return

    # timings, seconds on the engine clock; time parked is in neither
    active_since: float = 0.0
    prompt_s: float = 0.0
    decode_s: float = 0.0
    first_token_at: float = 0.0

    def __post_init__(self) -> None:
        self.n_prompt = len(self.tokens)

    @property
    def pending(self) -> int:
        """Tokens that the KV cache does not hold."""
        return len(self.tokens) - self.cells

    @property
    def generated(self) -> int:
        return len(self.tokens) + self.shifted - self.n_prompt

    @property
    def decoding(self) -> bool:
        return (
            self.state is State.RESIDENT
            and self.cells == len(self.tokens) - 1
            and len(self.tokens) + self.shifted > self.n_prompt
        )

    @property
    def is_cacheable(self) -> bool:
        return self.use_cache and not self.shifted

    @property
    def moving(self) -> bool:
        return self.state is State.RETURNING

    def pause_clock(self, now: float) -> None:
        """Add the time since `active_since` to the phase it belongs to."""
        passed, self.active_since = now - self.active_since, now
        if self.redo:  # only what it had already is computed: it waits
            self.parked_s += passed
        elif self.first_token_at:
            self.decode_s += passed
        else:
            self.prompt_s += passed


Work = tuple[Sequence, int]  # and how many of its tokens are computed
