"""What a plan is made from, and what it says."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class Schedulable(Protocol):
    """What the policy needs to know of a sequence."""

    @property
    def cells(self) -> int: ...  # held in the KV cache now; of a parked one, 0

    @property
    def pending(self) -> int: ...  # tokens that the KV cache does not hold: to be brought back, or computed

    @property
    def decoding(self) -> bool: ...  # resident, and only the token sampled last is pending

    @property
    def moving(self) -> bool: ...  # resident, but its pending cells still come back from host RAM

    @property
    def parks(self) -> int: ...

    @property
    def park_due(self) -> bool: ...

    @property
    def held(self) -> bool: ...  # by an operator: it is parked, and does not return

    @property
    def priority(self) -> int: ...  # the lower goes first; 0 is normal

    @property
    def since(self) -> float: ...  # s: a resident, when it got its place; who waits, since when


S = TypeVar("S", bound=Schedulable)


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy's numbers. The defaults are those that the simulation chose."""

    return_margin: float = 1 / 8  # of the pool, left free when a parked sequence returns
    join_margin: float = 1 / 64  # of the pool, left free when a new one is admitted; at least 8 cells
    parks_before_spared: int = 3
    level_s: float = 60.0  # the seconds of waiting that one level of priority is worth
    protected_s: float = 0.5  # a resident is not parked for a higher priority before
    turn_cells: int = 1024  # a turn is longer by `rotate_after` for each so many cells, to be worth its copy
    recompute_turns: int = 32  # how much longer a turn is while a park would cost the whole prefill again


DEFAULT = Policy()


@dataclass(frozen=True, slots=True)
class Pool(Generic[S]):
    """The state that a plan is made from.

    `parked` and `queued` are in the order of `line_key`. With equal priorities that is the order of parking
    and of arrival.
    """

    n_cells: int
    n_slots: int
    residents: Sequence[S]  # with those that are `moving` in
    parked: Collection[S]
    queued: Collection[S]
    step_tokens: int  # the most that one step may compute
    prefill_tokens: int  # the most of them that may be prompt while others wait for the step
    lone_chunk: int  # what it takes of a prompt that is the only resident
    now: float  # s, the clock of `since`
    rotate_after: float  # s; 0 or less: no rotation
    can_park: bool  # False: whom pressure takes is failed, and nobody is parked for anything else
    leaving: Sequence[
        S
    ] = ()  # on their way out: they hold a slot and `cells` that the step may free for itself
    swaps: bool = True  # False: host RAM is full, and a park now is paid for by a prefill
    policy: Policy = DEFAULT


@dataclass(slots=True)
class Plan(Generic[S]):
    """In the order in which it is carried out. `compute` pairs a sequence with its number of tokens."""

    park: list[tuple[S, str]] = field(default_factory=list)  # with the cause
    resume: list[S] = field(default_factory=list)
    admit: list[S] = field(default_factory=list)
    park_queued: list[S] = field(default_factory=list)  # they find no room: parked before their first token
    compute: list[tuple[S, int]] = field(default_factory=list)  # nobody of `resume`: they come in first
