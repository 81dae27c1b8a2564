"""Who of the line gets a place, and who is told that there is none."""

from __future__ import annotations

from itertools import islice

from .cells import available, needs
from .order import line, margin_for
from .state import Plan, Pool, S


def let_in(pool: Pool[S], out: Plan[S], residents: list[S]) -> tuple[S, int] | None:
    """Give places from the head of the line on; who is then the head, with the margin that it must leave."""
    slots, room = available(pool, out, residents)
    for s, is_queued in line(pool):
        margin = margin_for(pool, s, is_queued)
        if slots < 1 or needs(s) > room - (margin if residents else 0):
            return s, margin
        (out.admit if is_queued else out.resume).append(s)
        residents.append(s)
        slots -= 1
        room -= needs(s)
    return None


def park_queued(pool: Pool[S], out: Plan[S], n_residents: int) -> None:
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
