"""Residents that are parked for the head: their turn is over, or its priority is higher."""

from __future__ import annotations

from .cells import available, needs
from .order import is_due, join_margin, level, return_margin
from .state import Plan, Pool, S, Schedulable


def make_room(pool: Pool[S], out: Plan[S], residents: list[S], waiting: tuple[S, int]) -> None:
    """Have residents parked for the head: as few as will do, and nobody if that does not make it fit.

    Who leaves or comes in is waited for first: then the head may fit without.
    """
    if not pool.can_park or pool.leaving or out.park or out.resume:
        return
    head, margin = waiting
    if not is_due(pool, head) and not any(s.priority > head.priority for s in pool.residents):
        return
    turn = [(s, cause) for s in pool.residents if (cause := _cause_to_park(pool, s, head))]
    if not turn or any(s.moving for s in pool.residents):
        return
    # The lowest priority first, of these who has had its place the longest.
    turn.sort(key=lambda one: (-level(one[0]), one[0].since))
    slots, room = available(pool, out, residents)
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
    risen = level(head) - int((pool.now - head.since) / pool.policy.level_s)
    if is_due(pool, head) and risen <= level(s) and stayed >= turn_s(pool, s):
        return "rotation"
    return ""


def turn_s(pool: Pool[S], s: Schedulable) -> float:
    """Seconds that a resident has its place before rotation may take it.

    A turn grows with what parking costs: a copy of the cells, which grows with them, or a prefill.
    """
    turn = max(pool.rotate_after, 0.0) * max(1.0, s.cells / pool.policy.turn_cells)
    return turn if pool.swaps else turn * pool.policy.recompute_turns
