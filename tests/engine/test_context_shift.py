"""A sequence whose context is full forgets a part of it and goes on, and parks do not show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inference.engine.engine import Engine
from inference.engine.llama import Context
from inference.engine.sequence import Sequence
from inference.messages import Finished, Preempted

from .conftest import FOX, KNIGHT, Run

N_CTX = 64

Make = Callable[..., Engine]


def shifting(engine: Engine, n_keep: int, n_discard: int, n: int = 160) -> tuple[Run, Sequence]:
    run = Run(engine)
    seq = run.add(FOX, n)
    seq.n_keep, seq.n_discard = n_keep, n_discard
    return run.finish(), seq


@pytest.mark.parametrize("n_discard", [0, 10])
@pytest.mark.parametrize("n_keep", [0, 4, -1])
@pytest.mark.parametrize("every", [1, 2, 3, 5])
def test_parks_change_no_token_over_several_shifts(
    make_tiny_engine: Make, every: int, n_keep: int, n_discard: int
) -> None:
    def tokens(**kwargs: int) -> list[int]:
        engine = make_tiny_engine(1024, n_ctx_seq=N_CTX, context_shift=True, **kwargs)
        run, seq = shifting(engine, n_keep, n_discard)
        assert engine.counters.context_shifts_total > 2
        assert len(run.of(seq, Preempted)) == (159 // kwargs["preempt_every"] if kwargs else 0)
        end = run.of(seq, Finished)[0]
        assert (end.completion_tokens, end.truncated, end.stop_type) == (160, True, "limit")
        return [e.token for e in run.events[seq.id] if e.kind == "token"]

    assert tokens(preempt_every=every) == tokens()


@pytest.mark.parametrize("kind", ["gemma3", "mamba", "lfm2"])
@pytest.mark.parametrize("every", [1, 3])
def test_nor_with_another_kind_of_memory(
    tiny_context: Callable[..., Context], engine_over: Make, kind: str, every: int
) -> None:
    def tokens(preempt_every: int) -> list[int]:
        engine = engine_over(
            tiny_context(kind), 1024, n_ctx_seq=N_CTX, context_shift=True, preempt_every=preempt_every
        )
        run, seq = shifting(engine, n_keep=4, n_discard=0)
        assert seq.shifted > N_CTX
        return [e.token for e in run.events[seq.id] if e.kind == "token"]

    assert tokens(every) == tokens(0)


def test_nor_on_the_real_model(make_engine: Make) -> None:
    def text(**kwargs: int) -> str:
        engine = make_engine(1024, n_ctx_seq=32, context_shift=True, **kwargs)
        run, seq = shifting(engine, n_keep=4, n_discard=0, n=60)
        assert engine.counters.context_shifts_total > 2
        return run.text(seq)

    assert text(preempt_every=1) == text()


def test_what_is_kept_and_what_is_discarded(make_tiny_engine: Make) -> None:
    engine = make_tiny_engine(1024, n_ctx_seq=N_CTX, context_shift=True)
    run = Run(engine)
    seq = run.add(list(range(1000, 1020)), 100)
    seq.n_keep, seq.n_discard = 4, 10
    while len(seq.tokens) < N_CTX:
        run.step()
    before = list(seq.tokens)
    run.step()
    assert seq.tokens[:-1] == before[:4] + before[14:]
    assert seq.cells == engine.ctx.cells(seq.slot) == len(seq.tokens) - 1
    assert (seq.shifted, seq.generated) == (10, N_CTX - 20 + 1)


def test_without_it_a_full_context_ends_the_answer(make_tiny_engine: Make) -> None:
    run, seq = shifting(make_tiny_engine(1024, n_ctx_seq=N_CTX), 0, 0)
    end = run.of(seq, Finished)[0]
    assert (end.stop_type, end.truncated, len(seq.tokens)) == ("limit", True, N_CTX)


@pytest.mark.parametrize("ram", [0, -1], ids=["never-park", "swap"])
def test_beside_neighbours_everybody_goes_on(make_tiny_engine: Make, ram: int) -> None:
    engine = make_tiny_engine(256, n_ctx_seq=N_CTX, context_shift=True, preempt_ram=ram)
    run = Run(engine)
    seqs = [run.add(p, 200) for p in (FOX, KNIGHT, FOX)]
    run.finish()
    assert [s.generated for s in seqs] == [200] * 3


def test_a_shift_that_llama_cpp_cannot_do_is_not_offered(tiny_context: Callable[..., Context]) -> None:
    offered = {t: tiny_context("llama", t).can_shift for t in ("f32", "f16", "bf16", "q8_0")}
    assert offered == {"f32": True, "f16": True, "bf16": False, "q8_0": False}
    assert tiny_context("gemma3", "q8_0").can_shift  # its heads have 64 dimensions
