"""How long a plan holds, so that the clock can leap over the steps that would be the same."""

from __future__ import annotations

import math

from inference.engine import scheduler
from inference.engine.scheduler import Pool

from .chats import Chat
from .costs import Costs

LONE_CHUNK = 128


def times(pool: Pool[Chat], work: list[tuple[Chat, int]], costs: Costs, until: float) -> int:
    """How often the same step can be taken before the plan may be another one, not far beyond `until`, s."""
    tokens = n_prompt = n_decoding = 0
    most = 1 << 30
    for chat, n in work:
        tokens += n
        if chat.decoding:
            n_decoding += 1
            most = min(most, chat.prompt + chat.answer - chat.tokens)
        else:
            n_prompt += n
            most = min(most, (chat.tokens - chat.cells) // n)
    free = pool.n_cells - sum(s.cells for s in pool.residents)
    most = min(most, (free - len(work)) // tokens + 1, free // tokens)
    if len(work) == 1 and n_prompt % LONE_CHUNK:
        return 1
    seconds = costs.decode_s(n_decoding) + n_prompt * costs.prompt_token_s
    until = min(until, next_turn(pool))
    if until < math.inf:
        most = min(most, math.ceil((until - pool.now) / seconds))
    return max(1, most)


def next_turn(pool: Pool[Chat]) -> float:
    """When time alone may next change the plan, s: the head is due, or a resident's turn is over."""
    head = next(iter(pool.parked), None), next(iter(pool.queued), None)
    waiting = [s for s in head if s is not None]
    if not waiting:
        return math.inf
    moments = [s.since + pool.rotate_after for s in waiting]
    for s in pool.residents:
        moments += (s.since + scheduler.turn_s(pool, s), s.since + pool.policy.protected_s)
    level_s = pool.policy.level_s
    moments += (s.since + level_s * (1 + (pool.now - s.since) // level_s) for s in waiting)
    return min((m for m in moments if m > pool.now), default=math.inf)
