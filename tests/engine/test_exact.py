"""Exact mode: a text is the same whatever else runs, however often it is parked, and however."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from inference.engine.engine import Engine
from inference.engine.llama import Batch, Context, Model
from inference.messages import Preempted, SamplingParams

from .conftest import GREEDY, Run

WORDS = ("old", "sailor", "king", "river", "forest", "machine", "seven", "music", "garden", "winter", "stone")
LENGTHS = (5, 33, 60, 180)  # words
SAMPLED = SamplingParams(temperature=0.9, seed=7, repeat_penalty=1.1, ignore_eos=True)
N_TOKENS = 24
WAYS: dict[str, dict[str, Any]] = {
    "never": {},
    "by-swap": {"preempt_every": 3},
    "by-recompute": {"preempt_every": 10, "preempt_ram": 1},
}


class Texts:
    """What each of some prompts is answered, alone or beside the others."""

    def __init__(self, context: Context, n_prompts: int, n_tokens: int) -> None:
        dice = random.Random(3)
        self.prompts = [" ".join(dice.choice(WORDS) for _ in range(n)) for n in LENGTHS[:n_prompts]]
        self.context, self.n_tokens = context, n_tokens
        self.expected = self.alone()

    def alone(self, **how: Any) -> list[list[int]]:
        found = []
        for i in range(len(self.prompts)):
            run = self.run(**how)
            found.append(self.add(run, i))
            run.finish()
        return found

    def together(self, steps_between: int, **how: Any) -> list[list[int]]:
        run = self.run(**how)
        found: list[list[int]] = []
        for i in reversed(range(len(self.prompts))):  # another slot than alone
            found.insert(0, self.add(run, i))
            for _ in range(steps_between):
                run.step()
        run.finish()
        return found

    def run(self, **how: Any) -> Run:
        return Run(Engine(self.context, n_cells=512, n_slots=4, n_ctx_seq=512, **how))

    def add(self, run: Run, i: int) -> list[int]:
        """Its tokens, to which the engine appends."""
        return run.add(self.prompts[i], self.n_tokens, GREEDY if i % 2 else SAMPLED).tokens


@pytest.fixture(scope="module")
def real(model: Model) -> Iterator[Texts]:
    """Few and short, since each of their tokens takes its time; their prompts are of one piece and of two."""
    with closing(Context(model, n_ctx=512, n_seq_max=4, n_batch=512, exact=True)) as context:
        yield Texts(context, n_prompts=3, n_tokens=12)


@pytest.fixture(scope="module")
def quick(tiny_context: Callable[..., Context]) -> Iterator[Texts]:
    model = tiny_context().model
    with closing(Context(model, n_ctx=512, n_seq_max=4, n_batch=512, n_threads=1, exact=True)) as context:
        yield Texts(context, n_prompts=4, n_tokens=60)


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("steps_between", [0, 7], ids=["at-once", "one-after-another"])
def test_neighbours_parks_and_slots_change_no_token(
    quick: Texts, how: dict[str, Any], steps_between: int
) -> None:
    assert quick.together(steps_between, **how) == quick.expected


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_nor_on_the_real_model(real: Texts, how: dict[str, Any]) -> None:
    assert real.together(5, **how) == real.expected


def test_a_park_by_recompute_alone_changes_no_token(quick: Texts, real: Texts) -> None:
    for texts in (quick, real):
        assert texts.alone(**WAYS["by-recompute"]) == texts.expected


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
    quick: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = quick.context
    monkeypatch.setattr(context, "together", False)
    sizes: list[int] = []
    decode: Callable[..., int] = context.decode

    def counted(batch: Batch) -> int:
        sizes.append(batch.n)
        return decode(batch)

    monkeypatch.setattr(context, "decode", counted)
    run = quick.run()
    for prompt in quick.prompts[:2]:
        run.add(prompt[:20], 5)
    run.finish()
    assert sizes.count(1) == 8
    assert len(sizes) == 10


def test_after_a_batch_that_finds_no_cells_a_step_decodes_nothing_more(
    quick: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the batches after it could be of the sequence that is parked for it."""
    context = quick.context
    monkeypatch.setattr(context, "together", False)
    run = quick.run()
    seqs = [run.add(prompt[:20], 20) for prompt in quick.prompts[:3]]
    while not all(seq.decoding for seq in seqs):
        run.step()
    batches: list[Batch] = []

    def full(batch: Batch) -> int:
        batches.append(batch)
        return 1

    with monkeypatch.context() as filled:
        filled.setattr(context, "decode", full)
        run.step()
    assert len(batches) == 1
    run.finish()
    assert [seq.generated for seq in seqs] == [20, 20, 20]
    assert "decode" in [event.cause for seq in seqs for event in run.of(seq, Preempted)]
