"""The policy: who is parked, resumed and admitted, and what the next step computes.

`plan` is a pure function of the state it is given; it changes nothing, and the engine carries the plan
out. It reads from top to bottom as the policy:

1. A resident whose forced park is due is parked.
2. Every resident must be able to take at least one cell. While that does not fit, a victim is parked.
3. Parked sequences return in the order in which they were parked, and nobody passes a head that does
   not fit yet. A quarter of the pool must be left for everybody's growth, so that whoever returns is
   not parked again at once; without residents that is waived.
4. A queued sequence gets a slot in the order of arrival. If its prompt finds no room (here a small
   margin is enough), or somebody is parked, it is parked before its first token.
5. Decoding residents take one token each; what the step has left goes to prompts in equal shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

PARKS_BEFORE_PASSED_OVER = 3


class Schedulable(Protocol):
    """What the policy needs to know of a sequence."""

    @property
    def cells(self) -> int: ...  # held in the KV cache now; of a parked one, in host RAM: see `needs`

    @property
    def pending(self) -> int: ...  # tokens not yet in the KV cache

    @property
    def decoding(self) -> bool: ...

    @property
    def moving(self) -> bool: ...

    @property
    def held(self) -> bool: ...

    @property
    def parks(self) -> int: ...

    @property
    def park_due(self) -> bool: ...


S = TypeVar("S", bound=Schedulable)


@dataclass(frozen=True, slots=True)
class Pool(Generic[S]):
    """The state that a plan is made from. `parked` and `queued` are in the order of their turn."""

    n_cells: int
    n_slots: int
    residents: Sequence[S]
    leaving: Sequence[S]
    parked: Iterable[S]
    queued: Iterable[S]
    n_parked: int
    step_tokens: int  # the most that one step may compute
    prefill_tokens: int  # the most of them that may be prompt while others wait for the step
    lone_chunk: int  # what it takes of a prompt that is the only resident
    now: float
    rotate_after: float
    can_park: bool


@dataclass(slots=True)
class Plan(Generic[S]):
    """In the order in which it is carried out. `compute` pairs a sequence with its number of tokens."""

    park: list[tuple[S, str]] = field(default_factory=list)  # with the cause
    resume: list[S] = field(default_factory=list)
    admit: list[S] = field(default_factory=list)
    park_queued: list[S] = field(default_factory=list)  # they find no room: parked before their first token
    compute: list[tuple[S, int]] = field(default_factory=list)


def plan(pool: Pool[S]) -> Plan[S]:
    """The next step's plan. See the module's text for the policy."""
    out: Plan[S] = Plan()
    residents = list(pool.residents)
    free = pool.n_cells - sum(s.cells for s in residents) - sum(s.cells for s in pool.leaving)
    going = sum(s.cells for s in pool.leaving)

    for s in [s for s in residents if s.park_due or s.held]:
        out.park.append((s, "hand" if s.held else "forced"))
        residents.remove(s)
        going += s.cells
    while len(residents) > 1 and sum(s.pending if s.moving else 1 for s in residents) > free + going:
        s = victim(residents)
        out.park.append((s, "pressure"))
        residents.remove(s)
        going += s.cells

    # Room that is spoken for: a cell for each decoding resident, the whole rest of each prompt.
    room = free - sum(s.pending for s in residents)
    n_parked = pool.n_parked + len(out.park)
    if not any(cause == "pressure" for _, cause in out.park):
        for s in pool.parked:
            if s.held:
                continue
            need = needs(s)
            if len(residents) + len(pool.leaving) + len(
                out.park
            ) >= pool.n_slots or need > room - margin_to_return(pool, residents):
                break
            out.resume.append(s)
            residents.append(s)
            room -= need
            free -= s.pending
            n_parked -= 1
    for s in pool.queued:
        if len(residents) + len(pool.leaving) + n_parked >= pool.n_slots:
            break
        if n_parked or needs(s) > room - margin_to_join(pool, residents):
            out.park_queued.append(s)
            n_parked += 1
        else:
            out.admit.append(s)
            residents.append(s)
            room -= needs(s)

    _share(pool, out, [s for s in residents if not s.moving], free + going)
    return out


def needs(s: Schedulable) -> int:
    """Cells that a sequence takes once it is resident and has computed what is pending."""
    return s.cells + s.pending


def margin_to_return(pool: Pool[S], residents: list[S]) -> int:
    """Cells left free when a parked sequence returns; 0 when nobody is resident.

    With the small margin of a newcomer, whoever returns is soon the smallest again, and the next victim.
    """
    return pool.n_cells // 4 if residents else 0


def margin_to_join(pool: Pool[S], residents: list[S]) -> int:
    """Cells left free when a new sequence is admitted; 0 when nobody is resident."""
    return max(8, pool.n_cells // 64) if residents else 0


def victim(residents: Sequence[S]) -> S:
    """Whom to park: never the one with the most cells, else the smallest; one that was parked three times
    already is passed over while there is another."""
    leader = max(residents, key=lambda s: s.cells)
    others = [s for s in residents if s is not leader]
    spared = [s for s in others if s.parks < PARKS_BEFORE_PASSED_OVER]
    return min(spared or others, key=lambda s: s.cells)


def _share(pool: Pool[S], out: Plan[S], residents: list[S], free: int) -> None:
    """Fill `out.compute`: one token for each decoding resident, equal shares of the rest for the prompts."""
    prompts: list[S] = []
    for s in residents:
        if s.decoding and free > 0:
            out.compute.append((s, 1))
            free -= 1
        elif not s.decoding:
            prompts.append(s)
    if len(residents) == 1 and prompts:
        # Alone, a prompt is always cut at the same places, so that its text does not depend on timing.
        wanted = pool.lone_chunk - prompts[0].cells % pool.lone_chunk
    else:
        wanted = pool.prefill_tokens
    budget = min(wanted, pool.step_tokens - len(out.compute), free)
    prompts.sort(key=lambda s: s.pending)
    for i, s in enumerate(prompts):
        n = min(s.pending, budget // (len(prompts) - i))
        if n == 0 and budget > 0:
            n = 1
        if n > 0:
            out.compute.append((s, n))
            budget -= n
