"""What a step computes."""

from __future__ import annotations

from .cells import needs, step_room
from .state import Plan, Pool, S


def share(pool: Pool[S], out: Plan[S], residents: list[S]) -> None:
    """Fill `out.compute`: one token for each decoding resident, equal shares of the rest for the prompts."""
    free = step_room(pool, residents)
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
