"""Every kind of memory that a model can have: what can be saved of it, and that a park changes no token."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inference.engine.engine import Engine
from inference.engine.llama import Context
from inference.engine.sequence import State
from inference.messages import Preempted

from .conftest import KNIGHT, Run

KINDS = [
    ("llama", "f16", "pieces"),
    ("llama", "q8_0", "pieces"),
    ("gemma3", "f16", "pieces"),  # a sliding window of 32
    ("gemma3", "q8_0", "pieces"),
    ("mamba", "f16", "whole"),  # recurrent
    ("lfm2", "f16", "whole"),  # hybrid
    ("lfm2", "q8_0", "whole"),
]
PROMPT = list(range(1000, 1150))  # more than a piece, and several windows

Make = Callable[..., Engine]


@pytest.fixture(params=KINDS, ids=lambda one: f"{one[0]}-{one[1]}")
def kind(request: pytest.FixtureRequest) -> tuple[str, str, str]:
    one: tuple[str, str, str] = request.param
    return one


@pytest.fixture
def kind_context(kind: tuple[str, str, str], tiny_context: Callable[..., Context]) -> Context:
    return tiny_context(kind[0], kind[1])


def test_what_can_be_saved_is_found_out_by_trying(kind: tuple[str, str, str], kind_context: Context) -> None:
    assert kind_context.swap == kind[2]
    assert [kind_context.cells(slot) for slot in range(4)] == [0] * 4


@pytest.mark.parametrize("every", [1, 3, 7])
def test_parks_change_no_token(kind_context: Context, engine_over: Make, every: int) -> None:
    def tokens(**kwargs: int) -> list[int]:
        run = Run(engine_over(kind_context, 1024, **kwargs))
        seq = run.finish_one(PROMPT, 60)
        assert {e.method for e in run.of(seq, Preempted)} == ({"swap"} if kwargs else set())
        assert len(set(seq.tokens[len(PROMPT) :])) > 20  # a text that always says the same shows nothing
        return seq.tokens

    assert tokens(preempt_every=every) == tokens()


@pytest.mark.parametrize("plan_ahead", [True, False], ids=["planned", "unplanned"])
def test_two_that_do_not_fit_together_both_finish_in_full(
    kind_context: Context, engine_over: Make, plan_ahead: bool
) -> None:
    engine = engine_over(kind_context, 1024, n_slots=2, plan_ahead=plan_ahead)
    run = Run(engine)
    seqs = [run.add(PROMPT * 2, 250), run.add(PROMPT * 2 + PROMPT[:20], 250)]
    run.finish()
    assert [s.generated for s in seqs] == [250, 250]
    assert [run.events[s.id][-1].truncated for s in seqs] == [False, False]
    if plan_ahead:  # a recurrent state alone never finds its memory full
        assert engine.counters.n_preempt_total > 0
    assert engine.counters.n_preempt_total == engine.counters.n_resume_total
    assert engine.parked_bytes == engine.kept_bytes == 0


def test_a_parked_sequence_takes_no_more_ram_than_was_set_aside(
    kind_context: Context, engine_over: Make
) -> None:
    engine = engine_over(kind_context, 1024)
    run = Run(engine)
    seq = run.add(PROMPT * 4, 400)
    neighbour = run.add(KNIGHT, 400)
    while not (seq.decoding and neighbour.decoding):
        run.step()
    engine.hold(seq.id)
    run.step()
    set_aside = run.of(seq, Preempted)[0].bytes
    while seq.state is not State.PARKED:
        run.step()
    assert 0 < engine.parked_bytes <= set_aside
