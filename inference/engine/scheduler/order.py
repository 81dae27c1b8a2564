"""The line of those who wait: its order, its head, and what the head must leave free."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Generic

from .cells import available, needs
from .state import DEFAULT, Plan, Policy, Pool, S, Schedulable

LEVELS = 10  # priorities beyond count as this many levels: a line has an end for everybody


@dataclass(frozen=True, slots=True)
class Head(Generic[S]):
    """The first of those who wait. It comes in when a slot and the cells are there."""

    sequence: S
    needs: int  # cells, with those that are left free beside the residents
    free: int  # cells that nobody holds, and that nobody's prompt is about to take
    slots: int  # that are free


def line_key(s: Schedulable, policy: Policy = DEFAULT) -> float:
    """The order of the line: the least goes first. It does not change while a sequence waits."""
    return s.since + policy.level_s * level(s)


def level(s: Schedulable) -> int:
    return max(-LEVELS, min(LEVELS, s.priority))


def line(pool: Pool[S]) -> Iterator[tuple[S, bool]]:
    """Who waits, in the order of their turn, and whether it is queued. Not who is held or can never fit."""
    parked = ((line_key(s, pool.policy), s, False) for s in pool.parked)
    queued = ((line_key(s, pool.policy), s, True) for s in pool.queued)
    for _, s, is_queued in heapq.merge(parked, queued, key=itemgetter(0)):
        if not s.held and needs(s) <= pool.n_cells:
            yield s, is_queued


def head(pool: Pool[S]) -> Head[S] | None:
    """Whose turn is next, and what it waits for; None when nobody waits."""
    found = next(line(pool), None)
    if found is None:
        return None
    s, is_queued = found
    slots, room = available(pool, Plan(), list(pool.residents))
    margin = margin_for(pool, s, is_queued) if pool.residents else 0
    return Head(s, needs(s) + margin, max(0, room), max(0, slots))


def margin_for(pool: Pool[S], s: S, is_queued: bool) -> int:
    """Cells that are left free beside residents when this one comes in."""
    if is_queued:
        return join_margin(pool)
    # What residents grew since one was parked for it must not undo that.
    return return_margin(pool) // 2 if is_due(pool, s) else return_margin(pool)


def return_margin(pool: Pool[S]) -> int:
    """Cells left free beside residents when a parked sequence returns.

    With the small margin of a newcomer, whoever returns is soon the smallest again, and the next victim.
    """
    return int(pool.n_cells * pool.policy.return_margin)


def join_margin(pool: Pool[S]) -> int:
    """Cells left free beside residents when a new sequence is admitted."""
    return max(8, int(pool.n_cells * pool.policy.join_margin))


def is_due(pool: Pool[S], head: S) -> bool:
    return 0 < pool.rotate_after <= pool.now - head.since
