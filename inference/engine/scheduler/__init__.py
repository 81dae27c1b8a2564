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

from .cells import needs
from .order import Head, head, join_margin, line, line_key, return_margin
from .planning import plan, victim
from .rotation import turn_s
from .state import DEFAULT, Plan, Policy, Pool, Schedulable

__all__ = [
    "DEFAULT",
    "Head",
    "Plan",
    "Policy",
    "Pool",
    "Schedulable",
    "head",
    "join_margin",
    "line",
    "line_key",
    "needs",
    "plan",
    "return_margin",
    "turn_s",
    "victim",
]
