"""One step's plan, from top to bottom as the policy says."""

from __future__ import annotations

from collections.abc import Sequence

from .admission import let_in, park_queued
from .cells import holds, step_room
from .rotation import make_room
from .share import share
from .state import DEFAULT, Plan, Policy, Pool, S


def plan(pool: Pool[S]) -> Plan[S]:
    """The next step's plan. The package's text has the policy.

    The tokens of `compute` and the pending cells of those who move in fit into the cells that are free and
    those of `leaving` and `park` together; what `resume` and `admit` need is free already.
    """
    out: Plan[S] = Plan()
    residents = list(pool.residents)

    if pool.can_park:
        for s in [s for s in residents if s.park_due or s.held]:
            out.park.append((s, "hand" if s.held else "forced"))
            residents.remove(s)
    while len(residents) > 1 and sum(not s.moving for s in residents) > step_room(pool, residents):
        s = victim(residents, pool.policy)
        out.park.append((s, "pressure"))
        residents.remove(s)

    under_pressure = bool(out.park) and out.park[-1][1] == "pressure"
    if not under_pressure and (pool.parked or pool.queued):
        head = let_in(pool, out, residents)
        if head is not None:
            make_room(pool, out, residents, head)
    if pool.can_park and pool.queued:
        park_queued(pool, out, len(residents))
    share(pool, out, residents)
    return out


def victim(residents: Sequence[S], policy: Policy = DEFAULT) -> S:
    """Whom to park under pressure: of the lowest priority the smallest, never the leader.

    The leader has the most cells of the highest priority. One that was parked three times already is passed
    over while there is another, and one that is still moving in as well.
    """
    leader = min(residents, key=lambda s: (s.priority, -holds(s)))
    others = [s for s in residents if s is not leader] or [leader]
    others = [s for s in others if not s.moving] or others
    others = [s for s in others if s.parks < policy.parks_before_spared] or others
    return min(others, key=lambda s: (-s.priority, holds(s)))
