"""Parks and resumes on the real model: nothing of a text changes, and nothing is held afterwards."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from inference.engine.engine import Engine
from inference.engine.llama import Context
from inference.messages import Failed, Finished, Preempted, Resumed, SamplingParams

from .conftest import BAKER, FISHER, FOX, GREEDY, KNIGHT, Run

Make = Callable[..., Engine]


SAMPLED = SamplingParams(temperature=0.9, repeat_penalty=1.1, frequency_penalty=0.2, seed=7, ignore_eos=True)
N_TOKENS = 40


@pytest.fixture(scope="module")
def whole(context: Context) -> Callable[[SamplingParams], list[int]]:
    """Prompt and answer of a chat that is never parked."""

    @cache
    def tokens(sampling: SamplingParams) -> list[int]:
        run = Run(Engine(context, n_cells=1024, n_slots=4, n_ctx_seq=1024))
        return run.finish_one(BAKER, N_TOKENS, sampling).tokens

    return tokens


@pytest.mark.parametrize("every", [1, 2, 7, 16])
@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_forced_parks_change_no_token(
    make_engine: Make, whole: Callable[[SamplingParams], list[int]], every: int, sampling: SamplingParams
) -> None:
    run = Run(make_engine(1024, preempt_every=every))
    assert run.finish_one(BAKER, N_TOKENS, sampling).tokens == whole(sampling)
    assert len(run.events["0"]) == N_TOKENS + 2 + 2 * ((N_TOKENS - 1) // every)


def test_notices_come_in_pairs(make_tiny_engine: Make) -> None:
    run = Run(make_tiny_engine(1024, preempt_every=8))
    seq = run.add(KNIGHT, 40)
    run.finish()
    assert run.kinds(seq) == ["started", *["preempted", "resumed"] * 4, "finished"]


def test_two_that_do_not_fit_together_both_finish_in_full(make_engine: Make) -> None:
    run = Run(make_engine(128))
    seqs = [run.add(KNIGHT, 80), run.add(FOX, 80)]
    run.finish()
    for seq in seqs:
        assert seq.generated == 80
        assert run.events[seq.id][-1].truncated is False
    assert sum(len(run.of(s, Preempted)) for s in seqs) >= 1
    assert sum(len(run.of(s, Preempted)) for s in seqs) == sum(len(run.of(s, Resumed)) for s in seqs)


def test_a_prompt_that_finds_no_room_is_parked_before_its_first_token(make_tiny_engine: Make) -> None:
    run = Run(make_tiny_engine(256))
    first = run.add(KNIGHT, 120)
    run.step()
    second = run.add(" ".join([FOX] * 24), 8)
    run.step()
    assert run.kinds(second) == ["preempted"]
    assert run.of(second, Preempted)[0].cause == "admission"
    run.finish()
    assert run.kinds(second) == ["preempted", "resumed", "started", "finished"]
    assert (first.generated, second.generated) == (120, 8)


def test_parked_bytes_are_what_is_held_and_end_at_nothing(make_tiny_engine: Make) -> None:
    engine = make_tiny_engine(256)
    run = Run(engine)
    run.add(KNIGHT, 160)
    run.add(FOX, 160)
    seen = 0
    while not engine.idle:
        run.step()
        waiting = [*engine.parked, *engine.leaving, *(s for s in engine.residents if s.moving)]
        held = sum(s.copy.charged for s in waiting if s.copy is not None)
        assert engine.parked_bytes == held
        seen = max(seen, held)
    assert seen > 0
    assert engine.parked_bytes == 0


def test_beyond_the_ram_budget_a_park_is_by_recompute_and_the_text_goes_on(make_tiny_engine: Make) -> None:
    run = Run(make_tiny_engine(128, preempt_ram=1000))
    seqs = [run.add(KNIGHT, 80), run.add(FOX, 80)]
    run.finish()
    parks = [e for s in seqs for e in run.of(s, Preempted)]
    assert {e.method for e in parks} == {"recompute"}
    assert all(s.generated == 80 for s in seqs)
    assert [run.events[s.id][-1].prompt_tokens for s in seqs] == [s.n_prompt for s in seqs]


def test_without_ram_for_parks_only_the_request_that_cannot_go_on_fails(make_tiny_engine: Make) -> None:
    run = Run(make_tiny_engine(128, preempt_ram=0))
    seqs = [run.add(KNIGHT, 80), run.add(FOX, 80)]
    run.finish()
    ends = sorted(run.events[s.id][-1].kind for s in seqs)
    assert ends == ["failed", "finished"]
    failed = next(run.events[s.id][-1] for s in seqs if isinstance(run.events[s.id][-1], Failed))
    assert failed.type == "exceed_context_size_error"


def test_when_decode_finds_no_cells_a_victim_is_parked_and_nobody_ends(
    tiny_context: Callable[..., Context],
) -> None:
    context = Context(tiny_context().model, n_ctx=256, n_seq_max=2, n_batch=256, n_threads=1)
    engine = Engine(context, n_cells=256, n_slots=2, n_ctx_seq=256, plan_ahead=False)
    run = Run(engine)
    seqs = [run.add(" ".join([p] * 9), 60) for p in (KNIGHT, FOX)]
    run.finish()
    context.close()
    assert all(isinstance(run.events[s.id][-1], Finished) and s.generated == 60 for s in seqs)
    assert "decode" in {e.cause for s in seqs for e in run.of(s, Preempted)}


def test_a_cancel_frees_everything_in_every_state(make_engine: Make, context: Context) -> None:
    engine = make_engine(512, n_slots=2)
    run = Run(engine)
    decoding = run.add(KNIGHT, 300)
    for _ in range(5):
        run.step()
    prefilling = run.add(" ".join([FISHER] * 25), 50)
    queued = run.add(FOX, 50)
    run.step()
    assert decoding.decoding
    assert not prefilling.decoding
    assert prefilling.cells > 0
    assert queued in engine.queued
    for seq in (queued, prefilling, decoding):
        assert engine.cancel(seq.id)
    assert engine.idle
    assert engine.used_cells == 0
    parked = run.add(" ".join([FISHER] * 30), 100)
    run.step()
    other = run.add(" ".join([FISHER] * 30), 100)
    run.step()
    assert other in engine.parked
    assert engine.cancel(other.id)
    assert engine.cancel(parked.id)
    assert engine.idle
    assert engine.parked_bytes == 0
    assert not engine.cancel(other.id)
    for slot in range(2):
        assert context.state_size(slot) < 100  # an empty sequence is a header


def test_a_cancelled_parked_sequence_releases_its_saved_state(make_tiny_engine: Make) -> None:
    engine = make_tiny_engine(256)
    run = Run(engine)
    run.add(KNIGHT, 160)
    run.add(FOX, 160)
    while not engine.parked_bytes:
        run.step()
    engine.cancel(next(iter(engine.parked)).id)
    assert engine.parked_bytes == 0
    run.finish()
    assert engine.counters.n_preempt_total == 1


def test_timings_count_the_prompt_once_however_often_it_is_parked(make_tiny_engine: Make) -> None:
    run = Run(make_tiny_engine(1024, preempt_every=4))
    seq = run.add(KNIGHT, 20)
    run.finish()
    end = run.events[seq.id][-1]
    assert (end.timings.prompt_n, end.timings.predicted_n, end.parks) == (seq.n_prompt, 20, 4)
