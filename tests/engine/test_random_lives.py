"""Hundreds of random chats on small pools of a tiny model: whatever happens, the books balance."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference.engine import parking, prefix_cache
from inference.engine.engine import Engine
from inference.engine.llama import Context, Model
from inference.messages import Accepted, Failed, Finished, Preempted, Resumed, SamplingParams, Started, Token

from . import tiny
from .conftest import Run

N_CELLS, N_SLOTS = 256, 5


@pytest.fixture(scope="module")
def small_context(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Iterator[Context]:
    path = tmp_path_factory.mktemp("tiny") / "tiny.gguf"
    tiny.write(path, Path(model.path))
    context = Context(Model(str(path)), n_ctx=N_CELLS, n_seq_max=N_SLOTS, n_batch=64, n_threads=1)
    yield context
    context.close()


def check_books(engine: Engine, context: Context, preempt_ram: int, cache_ram: int) -> None:
    """What the engine believes is what llama.cpp holds."""
    seated = [*engine.residents, *engine.leaving]
    by_slot = {s.slot: s for s in seated}
    assert len(by_slot) == len(seated) <= N_SLOTS
    for slot in range(N_SLOTS):
        assert context.cells(slot) == (by_slot[slot].cells if slot in by_slot else 0)
    assert engine.used_cells <= N_CELLS
    copies = [s.copy.charged for s in engine.everyone() if s.copy is not None]
    assert engine.parked_bytes + engine.kept_bytes == sum(copies)
    if cache_ram >= 0:
        assert engine.cached_bytes <= cache_ram
    if preempt_ram > 0:
        assert sum(copies) <= preempt_ram
    for seq in engine.parked:
        assert seq.swapped == (min(seq.swapped, len(seq.tokens)) if seq.copy is not None else 0)


def check_life(events: list[object]) -> None:
    """started, then parks and resumes in pairs, and one end."""
    kinds = [type(e) for e in events]
    assert kinds.count(Finished) + kinds.count(Failed) == 1
    assert kinds[-1] in (Finished, Failed)
    parked = False
    for kind in kinds:
        if kind is Preempted:
            assert not parked
            parked = True
        elif kind is Resumed:
            assert parked
            parked = False
        elif kind in (Token, Started):
            assert not parked
        assert kind is not Accepted
    if Token in kinds:
        assert kinds.index(Started) < kinds.index(Token)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("plan_ahead", [True, False], ids=["planned", "unplanned"])
@pytest.mark.parametrize("preempt_ram", [-1, 60_000, 0], ids=["swap", "little-ram", "never-park"])
def test_the_books_balance_after_every_step(
    small_context: Context, seed: int, plan_ahead: bool, preempt_ram: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parking, "PIECE", 16)
    monkeypatch.setattr(prefix_cache, "BLOCK", 16)
    dice = random.Random(seed)
    cache_ram = (0, -1, 60_000, 200_000)[seed]
    engine = Engine(
        small_context,
        n_cells=N_CELLS,
        n_slots=N_SLOTS,
        n_ctx_seq=N_CELLS,
        plan_ahead=plan_ahead,
        preempt_ram=preempt_ram,
        preempt_every=dice.choice([0, 0, 3, 10]),
        context_shift=bool(seed % 2),
        cache_ram=cache_ram,
        lone_chunk=32,
    )
    run, to_come, steps = Run(engine), 40, 0
    while to_come or engine.parked or not engine.idle:
        while to_come and dice.random() < 0.3:
            prompt = [dice.randrange(100, 40_000) for _ in range(dice.choice([1, 5, 30, 100, 240]))]
            if dice.random() < 0.5:  # it begins as others do
                prompt[:100] = range(500, 500 + len(prompt[:100]))
            sampling = SamplingParams(temperature=dice.choice([0.0, 1.0]), seed=1, ignore_eos=True)
            run.add(prompt, dice.choice([0, 1, 20, 60, 200]), sampling)
            to_come -= 1
        if dice.random() < 0.03:
            everyone = list(engine.everyone())
            if everyone:
                engine.cancel(dice.choice(everyone).id)
        if dice.random() < 0.02:
            for seq in engine.everyone():
                engine.release(seq.id) if seq.held else dice.random() < 0.2 and engine.hold(seq.id)
        run.step()
        check_books(engine, small_context, preempt_ram, cache_ram)
        steps += 1
        assert steps < 20_000, "it does not come to an end"
    for events in run.events.values():
        check_life(events)
    counters = engine.counters
    assert counters.n_resume_total <= counters.n_preempt_total
    assert sum(counters.parks.values()) == counters.n_preempt_total
    assert sum(counters.resumes.values()) == counters.n_resume_total
    assert engine.parked_bytes == engine.kept_bytes == 0
    if cache_ram <= 0:
        assert (counters.prompt_tokens_cached_total > 0) == (cache_ram < 0)
