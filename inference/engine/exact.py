"""Exact mode: batches in which nothing that is computed depends on who else is there."""

from __future__ import annotations

from collections.abc import Iterator

from .sequence import Sequence, State, Work

CHUNK = 32  # tokens; prompts are cut at its multiples, whatever a step may take


def batches(work: list[Work], together: bool) -> Iterator[list[Work]]:
    """The step's work, one batch after the other.

    Each piece of a prompt is alone and always cut at the same places. What was generated goes through one
    token at a time, even when it is computed again. `together`: such tokens of several sequences may share
    a batch.
    """
    prompts = sorted((one for one in work if _in_its_prompt(one[0])), key=_since)
    single = [(s, 1) for s, _ in work if not _in_its_prompt(s)]
    if single:
        yield from [single] if together else [[one] for one in single]
    budget = sum(n for _, n in prompts)
    for seq, _ in prompts:
        while _in_its_prompt(seq):
            n = min(CHUNK - seq.cells % CHUNK, seq.n_prompt - seq.cells, seq.pending)
            if n > budget:
                return
            budget -= n
            yield [(seq, n)]


def _in_its_prompt(seq: Sequence) -> bool:
    """A context shift leaves fewer tokens than the prompt had, and not all of them the prompt's."""
    return seq.state is State.RESIDENT and seq.cells < seq.n_prompt and not seq.decoding


def _since(one: Work) -> float:
    return one[0].since
