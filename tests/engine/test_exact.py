"""Exact mode: a text is the same whatever else runs, however often it is parked, and however."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from inference.engine.engine import Engine
from inference.engine.llama import Batch, Context, Model
from inference.messages import SamplingParams

from .conftest import GREEDY, Run

WORDS = ("old", "sailor", "king", "river", "forest", "machine", "seven", "music", "garden", "winter", "stone")
LENGTHS = (5, 33, 120, 180)  # words
SAMPLED = SamplingParams(temperature=0.9, seed=7, repeat_penalty=1.1, ignore_eos=True)
N_TOKENS = 24


@pytest.fixture(scope="module")
def context(model: Model) -> Iterator[Context]:
    context = Context(model, n_ctx=512, n_seq_max=4, n_batch=512, exact=True)
    yield context
    context.close()


@pytest.fixture(scope="module")
def prompts() -> list[str]:
    dice = random.Random(3)
    return [" ".join(dice.choice(WORDS) for _ in range(n)) for n in LENGTHS]


def engine(context: Context, preempt_every: int = 0, preempt_ram: int = -1) -> Engine:
    return Engine(
        context,
        n_cells=512,
        n_slots=4,
        n_ctx_seq=512,
        preempt_every=preempt_every,
        preempt_ram=preempt_ram,
    )


def add(run: Run, prompts: list[str], i: int) -> list[int]:
    """Its tokens, to which the engine appends."""
    return run.add(prompts[i], N_TOKENS, GREEDY if i % 2 else SAMPLED).tokens


def alone(context: Context, prompts: list[str], **kwargs: int) -> list[list[int]]:
    found = []
    for i in range(len(prompts)):
        run = Run(engine(context, **kwargs))
        found.append(add(run, prompts, i))
        run.finish()
    return found


@pytest.fixture(scope="module")
def expected(context: Context, prompts: list[str]) -> list[list[int]]:
    return alone(context, prompts)


@pytest.mark.parametrize(
    "how",
    [{}, {"preempt_every": 3}, {"preempt_every": 10, "preempt_ram": 1}],
    ids=["never", "by-swap", "by-recompute"],
)
@pytest.mark.parametrize("steps_between", [0, 7], ids=["at-once", "one-after-another"])
def test_neighbours_parks_and_slots_change_no_token(
    context: Context, prompts: list[str], expected: list[list[int]], how: dict[str, int], steps_between: int
) -> None:
    run = Run(engine(context, **how))
    found: list[list[int]] = []
    for i in reversed(range(len(prompts))):  # another slot than alone
        found.insert(0, add(run, prompts, i))
        for _ in range(steps_between):
            run.step()
    run.finish()
    assert found == expected


def test_a_park_by_recompute_alone_changes_no_token(
    context: Context, prompts: list[str], expected: list[list[int]]
) -> None:
    assert alone(context, prompts, preempt_every=10, preempt_ram=1) == expected


@pytest.fixture
def tight(tiny_context: Callable[..., Context]) -> Iterator[Context]:
    """The smallest batches that there are."""
    context = Context(tiny_context().model, n_ctx=256, n_seq_max=2, n_batch=1, n_threads=1, exact=True)
    yield context
    context.close()


@pytest.mark.parametrize("context_shift", [False, True])
def test_small_batches_and_context_shifts_hold_nobody_up(tight: Context, context_shift: bool) -> None:
    def tokens(*prompts: list[int], **kwargs: Any) -> list[list[int]]:
        run = Run(Engine(tight, n_cells=256, n_slots=2, n_ctx_seq=96, context_shift=context_shift, **kwargs))
        seqs = [run.add(prompt, 100 if context_shift else 20) for prompt in prompts]
        run.finish()
        assert all(run.events[s.id][-1].kind == "finished" for s in seqs)
        assert (run.engine.counters.context_shifts_total > 0) == context_shift
        return [[e.token for e in run.events[s.id] if e.kind == "token"] for s in seqs]

    one, other = list(range(1000, 1070)), list(range(2000, 2065))  # more than a shift leaves
    expected = tokens(one) + tokens(other)
    assert tokens(one, other) == expected
    assert tokens(one, other, preempt_every=7) == expected
    if not context_shift:
        assert tokens(one, other, preempt_every=7, preempt_ram=1) == expected


def test_where_sharing_a_batch_would_change_bits_each_decodes_alone(
    context: Context, prompts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "together", False)
    sizes: list[int] = []
    decode: Callable[..., int] = context.decode

    def counted(batch: Batch) -> int:
        sizes.append(batch.n)
        return decode(batch)

    monkeypatch.setattr(context, "decode", counted)
    run = Run(engine(context))
    for i in (0, 1):
        run.add(prompts[i][:20], 5)
    run.finish()
    assert sizes.count(1) == 8
    assert len(sizes) == 10
