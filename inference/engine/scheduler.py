"""The policy: who is parked, resumed and admitted, and what the next step computes.

`plan` is a pure function of the state it is given; it changes nothing, and the engine carries the plan
out. It reads from top to bottom as the policy:

1. A resident whose park is forced, or that an operator holds, is parked.
2. Every resident that computes must be able to take at least one cell. While that does not fit, a victim
   is parked.
3. Parked and queued sequences wait in one line for a place. Its order is the time since when they wait; a
   level of priority is worth a minute of it. Nobody passes a head that does not fit yet. Cells are
   left for the residents to grow, so that whoever comes in does not drive another out again at once;
   without residents that is waived.
4. A head of higher priority has residents of lower priority parked for it. A head that has waited for
   `rotate_after` has residents parked whose turn is over: that is rotation, and the leader is not spared.
   Either is done only if it makes room for the head, and one at a time.
5. A queued sequence that a slot is there for, but no room, is parked before its first token.
6. Decoding residents take one token each; what the step has left goes to prompts in equal shares.

docs/scheduling.md states what follows for the longest wait, and the simulation that chose the numbers.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
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
LEVELS = 10  # priorities beyond count as this many levels: a line has an end for everybody


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


@dataclass(frozen=True, slots=True)
class Head(Generic[S]):
    """The first of those who wait. It comes in when a slot and the cells are there."""

    sequence: S
    needs: int  # cells, with those that are left free beside the residents
    free: int  # cells that nobody holds, and that nobody's prompt is about to take
    slots: int  # that are free


def plan(pool: Pool[S]) -> Plan[S]:
    """The next step's plan. See the module's text for the policy.

    The tokens of `compute` and the pending cells of those who move in fit into the cells that are free and
    those of `leaving` and `park` together; what `resume` and `admit` need is free already.
    """
    out: Plan[S] = Plan()
    residents = list(pool.residents)

    if pool.can_park:
        for s in [s for s in residents if s.park_due or s.held]:
            out.park.append((s, "hand" if s.held else "forced"))
            residents.remove(s)
    while len(residents) > 1 and sum(not s.moving for s in residents) > _step_room(pool, residents):
        s = victim(residents, pool.policy)
        out.park.append((s, "pressure"))
        residents.remove(s)

    under_pressure = bool(out.park) and out.park[-1][1] == "pressure"
    if not under_pressure and (pool.parked or pool.queued):
        head = _let_in(pool, out, residents)
        if head is not None:
            _make_room(pool, out, residents, head)
    if pool.can_park and pool.queued:
        _park_queued(pool, out, len(residents))
    _share(pool, out, residents)
    return out


def victim(residents: Sequence[S], policy: Policy = DEFAULT) -> S:
    """Whom to park under pressure: of the lowest priority the smallest, never the leader.

    The leader has the most cells of the highest priority. One that was parked three times already is passed
    over while there is another, and one that is still moving in as well.
    """
    leader = min(residents, key=lambda s: (s.priority, -_holds(s)))
    others = [s for s in residents if s is not leader] or [leader]
    others = [s for s in others if not s.moving] or others
    others = [s for s in others if s.parks < policy.parks_before_spared] or others
    return min(others, key=lambda s: (-s.priority, _holds(s)))


# --- the line ---------------------------------------------------------------------------------------


def line_key(s: Schedulable, policy: Policy = DEFAULT) -> float:
    """The order of the line: the least goes first. It does not change while a sequence waits."""
    return s.since + policy.level_s * _level(s)


def _level(s: Schedulable) -> int:
    return max(-LEVELS, min(LEVELS, s.priority))


def line(pool: Pool[S]) -> Iterator[tuple[S, bool]]:
    """Who waits, in the order of their turn, and whether it is queued. Not who is held or can never fit."""
    parked = ((line_key(s, pool.policy), s, False) for s in pool.parked)
    queued = ((line_key(s, pool.policy), s, True) for s in pool.queued)
    for _, s, is_queued in heapq.merge(parked, queued, key=itemgetter(0)):
        if not s.held and needs(s) <= pool.n_cells:
            yield s, is_queued


def _let_in(pool: Pool[S], out: Plan[S], residents: list[S]) -> tuple[S, int] | None:
    """Give places from the head of the line on; who is then the head, with the margin that it must leave."""
    slots, room = _room(pool, out, residents)
    for s, is_queued in line(pool):
        margin = _margin(pool, s, is_queued)
        if slots < 1 or needs(s) > room - (margin if residents else 0):
            return s, margin
        (out.admit if is_queued else out.resume).append(s)
        residents.append(s)
        slots -= 1
        room -= needs(s)
    return None


def head(pool: Pool[S]) -> Head[S] | None:
    """Whose turn is next, and what it waits for; None when nobody waits."""
    found = next(line(pool), None)
    if found is None:
        return None
    s, is_queued = found
    slots, room = _room(pool, Plan(), list(pool.residents))
    margin = _margin(pool, s, is_queued) if pool.residents else 0
    return Head(s, needs(s) + margin, max(0, room), max(0, slots))


def _margin(pool: Pool[S], s: S, is_queued: bool) -> int:
    """Cells that are left free beside residents when this one comes in."""
    if is_queued:
        return join_margin(pool)
    # What residents grew since one was parked for it must not undo that.
    return return_margin(pool) // 2 if _is_due(pool, s) else return_margin(pool)


def return_margin(pool: Pool[S]) -> int:
    """Cells left free beside residents when a parked sequence returns.

    With the small margin of a newcomer, whoever returns is soon the smallest again, and the next victim.
    """
    return int(pool.n_cells * pool.policy.return_margin)


def join_margin(pool: Pool[S]) -> int:
    """Cells left free beside residents when a new sequence is admitted."""
    return max(8, int(pool.n_cells * pool.policy.join_margin))


def _park_queued(pool: Pool[S], out: Plan[S], n_residents: int) -> None:
    """While there are fewer chats than slots, a newcomer that finds no room is told so, and waits parked."""
    n = n_residents + len(pool.leaving) + len(out.park)
    if n >= pool.n_slots:
        return
    n -= len(out.resume)  # they are among the parked still
    n += sum(1 for _ in islice((s for s in pool.parked if not s.held), pool.n_slots))
    for s in pool.queued:
        if n >= pool.n_slots:
            break
        if not s.held and s not in out.admit:
            out.park_queued.append(s)
            n += 1


# --- rotation and priority --------------------------------------------------------------------------


def _make_room(pool: Pool[S], out: Plan[S], residents: list[S], waiting: tuple[S, int]) -> None:
    """Have residents parked for the head: as few as will do, and nobody if that does not make it fit.

    Who leaves or comes in is waited for first: then the head may fit without.
    """
    if not pool.can_park or pool.leaving or out.park or out.resume:
        return
    head, margin = waiting
    if not _is_due(pool, head) and not any(s.priority > head.priority for s in pool.residents):
        return
    turn = [(s, cause) for s in pool.residents if (cause := _cause_to_park(pool, s, head))]
    if not turn or any(s.moving for s in pool.residents):
        return
    # The lowest priority first, of these who has had its place the longest.
    turn.sort(key=lambda one: (-_level(one[0]), one[0].since))
    slots, room = _room(pool, out, residents)
    growth = 2 * join_margin(pool)  # of the others while it is copied out
    for left_free in (return_margin(pool) + growth, margin + growth):

        def fits(chosen: list[tuple[S, str]], left_free: int = left_free) -> bool:
            free = room + sum(needs(s) for s, _ in chosen)
            return slots + len(chosen) > 0 and needs(head) <= free - (
                left_free if len(chosen) < len(residents) else 0
            )

        chosen: list[tuple[S, str]] = []
        while not fits(chosen) and len(chosen) < len(turn):
            chosen.append(turn[len(chosen)])
        if fits(chosen):
            for one in chosen[-2::-1]:
                if fits([c for c in chosen if c is not one]):
                    chosen.remove(one)
            out.park += chosen
            for s, _ in chosen:
                residents.remove(s)
            return


def _cause_to_park(pool: Pool[S], s: S, head: S) -> str:
    """Why a resident may be parked for the head; "" for not at all.

    Waiting raises the head's priority for rotation alone. Would it also shorten a turn, then a long line
    would be one of higher and higher priorities, and nobody in it would get a whole turn.
    """
    spared = s.parks >= pool.policy.parks_before_spared
    if spared and not s.decoding:
        return ""  # it has lost its prompt's time often enough: now it comes to its next token
    stayed = pool.now - s.since
    if head.priority < s.priority and stayed >= (turn_s(pool, s) if spared else pool.policy.protected_s):
        return "priority"
    risen = _level(head) - int((pool.now - head.since) / pool.policy.level_s)
    if _is_due(pool, head) and risen <= _level(s) and stayed >= turn_s(pool, s):
        return "rotation"
    return ""


def _is_due(pool: Pool[S], head: S) -> bool:
    return 0 < pool.rotate_after <= pool.now - head.since


def turn_s(pool: Pool[S], s: Schedulable) -> float:
    """Seconds that a resident has its place before rotation may take it.

    A turn grows with what parking costs: a copy of the cells, which grows with them, or a prefill.
    """
    turn = max(pool.rotate_after, 0.0) * max(1.0, s.cells / pool.policy.turn_cells)
    return turn if pool.swaps else turn * pool.policy.recompute_turns


# --- cells ------------------------------------------------------------------------------------------


def needs(s: Schedulable) -> int:
    """Cells that a sequence takes once it is resident and has computed what is pending."""
    return s.cells + s.pending


def _holds(s: Schedulable) -> int:
    """Cells that nobody else can take: those of one that moves in are spoken for."""
    return s.cells + s.pending if s.moving else s.cells


def _step_room(pool: Pool[S], residents: list[S]) -> int:
    """Cells for the tokens of this step. Who leaves makes way for them."""
    return pool.n_cells - sum(_holds(s) for s in residents)


def _room(pool: Pool[S], out: Plan[S], residents: list[S]) -> tuple[int, int]:
    """Slots and cells for who waits. What leaves still holds its own; each prompt's rest is spoken for."""
    leaving = [*pool.leaving, *(s for s, _ in out.park)]
    slots = pool.n_slots - len(residents) - len(leaving)
    return slots, pool.n_cells - sum(s.cells for s in leaving) - sum(needs(s) for s in residents)


# --- the step ---------------------------------------------------------------------------------------


def _share(pool: Pool[S], out: Plan[S], residents: list[S]) -> None:
    """Fill `out.compute`: one token for each decoding resident, equal shares of the rest for the prompts."""
    free = _step_room(pool, residents)
    prompts: list[S] = []
    for s in residents:
        if s.moving:
            continue
        if s in out.resume:
            free -= needs(s)
        elif not s.decoding:
            prompts.append(s)
        elif free > 0:
            out.compute.append((s, 1))
            free -= 1
    if not prompts:
        return
    if len(residents) == 1:
        # Alone, a prompt is always cut at the same places, so that its text does not depend on timing.
        wanted = pool.lone_chunk - prompts[0].cells % pool.lone_chunk
    elif out.compute:
        wanted = pool.prefill_tokens
    else:  # nobody's next token waits for the step
        wanted = max(pool.prefill_tokens, pool.lone_chunk)
    budget = min(wanted, pool.step_tokens - len(out.compute), free)
    prompts.sort(key=lambda s: s.pending)
    for i, s in enumerate(prompts):
        n = min(s.pending, budget // (len(prompts) - i))
        if n == 0 and budget > 0:
            n = 1
        if n > 0:
            out.compute.append((s, n))
            budget -= n
