"""A piece that cannot be saved or restored costs time, and no token. Here each step copies one piece."""

from __future__ import annotations

import pytest

from inference.engine.llama import Context
from inference.messages import Preempted, Resumed, Token

from .conftest import Run
from .moves import LONG, Make

pytestmark = pytest.mark.usefixtures("one_piece_a_step")


@pytest.mark.parametrize("nth", [1, 2, 4])
def test_a_failed_restore_beside_others_leaves_it_parked_and_loses_nothing(
    make_tiny_engine: Make, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    run = Run(make_tiny_engine(2048))
    seq, neighbour = run.add(LONG, 30), run.add(LONG[:10], 400)
    while not (seq.decoding and neighbour.decoding):
        run.step()
    load, calls = Context.load_piece, []

    def fails_once(self: Context, seq_id: int, data: object) -> bool:
        calls.append(seq_id)
        return len(calls) != nth and load(self, seq_id, data)  # type: ignore[arg-type]

    monkeypatch.setattr(Context, "load_piece", fails_once)
    run.engine.hold(seq.id)
    run.engine.release(seq.id)
    run.finish()
    assert len(calls) == 4 + nth  # those before the failure came in again
    assert run.kinds(seq) == ["started", "preempted", "resumed", "finished"]
    assert (seq.generated, neighbour.generated) == (30, 400)
    assert run.engine.counters.recomputed_tokens_total == 0
    assert sum(run.engine.counters.copy_out_seconds.counts) == 1
    assert run.engine.counters.parks == run.engine.counters.resumes == {("hand", "swap"): 1}
    assert run.engine.parked_bytes == 0


def alone(make: Make, preempt_every: int) -> tuple[Run, list[int]]:
    """A run of one long chat to its end, and the chat's tokens."""
    run = Run(make(1024, preempt_every=preempt_every))
    return run, run.finish_one(LONG, 30).tokens


@pytest.mark.parametrize("nth", [1, 2, 4])
def test_what_cannot_be_restored_though_nobody_else_is_there_is_recomputed(
    make_tiny_engine: Make, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    _, reference = alone(make_tiny_engine, 0)
    load, calls = Context.load_piece, []

    def fails_from_the_nth(self: Context, seq_id: int, data: object) -> bool:
        calls.append(seq_id)
        return len(calls) < nth and load(self, seq_id, data)  # type: ignore[arg-type]

    monkeypatch.setattr(Context, "load_piece", fails_from_the_nth)
    run, parked = alone(make_tiny_engine, 20)
    assert parked == reference
    assert len(calls) == nth
    kinds = [e.kind for e in run.events["0"] if not isinstance(e, Token)]
    assert kinds == ["started", "preempted", "resumed", "finished"]
    assert run.engine.counters.recomputed_tokens_total == len(LONG) + 19
    assert run.engine.parked_bytes == 0


@pytest.mark.parametrize("nth", [1, 3])
def test_what_cannot_be_saved_is_recomputed(
    make_tiny_engine: Make, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    _, reference = alone(make_tiny_engine, 0)
    save, calls = Context.save_piece, []

    def fails_once(self: Context, *args: int) -> object:
        calls.append(args)
        return None if len(calls) == nth else save(self, *args)

    monkeypatch.setattr(Context, "save_piece", fails_once)
    run, parked = alone(make_tiny_engine, 20)
    assert parked == reference
    assert run.engine.counters.recomputed_tokens_total == len(LONG) + 19
    assert run.engine.parked_bytes == run.engine.kept_bytes == 0
    methods = [e.method for e in run.events["0"] if isinstance(e, Preempted | Resumed)]
    assert methods == ["swap", "recompute"]
    assert run.engine.counters.parks == run.engine.counters.resumes == {("forced", "recompute"): 1}
