"""Exact mode: a text is the same whatever else runs, however often it is parked, and however."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

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
