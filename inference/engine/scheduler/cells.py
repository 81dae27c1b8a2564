"""How many cells and slots there are, and for whom."""

from __future__ import annotations

from .state import Plan, Pool, S, Schedulable


def needs(s: Schedulable) -> int:
    """Cells that a sequence takes once it is resident and has computed what is pending."""
    return s.cells + s.pending


def holds(s: Schedulable) -> int:
    """Cells that nobody else can take: those of one that moves in are spoken for."""
    return s.cells + s.pending if s.moving else s.cells


def step_room(pool: Pool[S], residents: list[S]) -> int:
    """Cells for the tokens of this step. Who leaves makes way for them."""
    return pool.n_cells - sum(holds(s) for s in residents)


def available(pool: Pool[S], out: Plan[S], residents: list[S]) -> tuple[int, int]:
    """Slots and cells for who waits. What leaves still holds its own; each prompt's rest is spoken for."""
    leaving = [*pool.leaving, *(s for s, _ in out.park)]
    slots = pool.n_slots - len(residents) - len(leaving)
    return slots, pool.n_cells - sum(s.cells for s in leaving) - sum(needs(s) for s in residents)
