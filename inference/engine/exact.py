"""Exact mode: batches in which nothing that is computed depends on who else is there."""

from __future__ import annotations

from collections.abc import Iterator

from .sequence import Work

CHUNK = 32  # tokens; prompts are cut at its multiples, whatever a step may take


def batches(work: list[Work], together: bool) -> Iterator[list[Work]]:
    """The step's work, one batch after the other.

    Each piece of a prompt is alone and always cut at the same places. What was generated goes through one
    token at a time, even when it is computed again. `together`: such tokens of several sequences may share
    a batch.
    """
    single = [(s, 1) for s, _ in work if s.cells >= s.n_prompt]
    if single:
        yield from [single] if together else [[one] for one in single]
    budget = sum(n for s, n in work if s.cells < s.n_prompt)
    for seq, _ in sorted(work, key=_since):
        while seq.cells < seq.n_prompt:
            n = min(CHUNK - seq.cells % CHUNK, seq.n_prompt - seq.cells)
            if n > budget:
                return
            budget -= n
            yield [(seq, n)]


def _since(one: Work) -> float:
    return one[0].since
