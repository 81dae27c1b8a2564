"""Who may have ended a worker is computed alone, until it has a token."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inference.engine.llama import Batch, Context
from inference.engine.past import Past
from inference.messages import (
    Finished,
    Preempted,
)

from .conftest import GREEDY
from .lives import PROMPT, Lives, engine


def test_who_may_be_to_blame_is_tried_alone_until_it_has_a_token(
    exact: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those who had a place, and as many of those who waited as there are places; and nobody else."""
    now: list[str] = [""]
    tried: list[str] = []

    def on_trial(id: str) -> None:
        now[0] = id
        tried.append(id)

    run = Lives(engine(exact, n_slots=2, on_trial=on_trial))
    decode: Callable[..., int] = exact.decode

    def checked(batch: Batch) -> int:
        if now[0]:
            (slot,) = {int(slot) for slot in batch._seq[: batch.n]}
            assert [s.id for s in run.engine.residents if s.slot == slot] == [now[0]]
        return decode(batch)

    monkeypatch.setattr(exact, "decode", checked)
    lives = [(run.sequence(GREEDY, 5), Past([5], accepted_ago=20.0, is_started=True)) for _ in range(2)]
    lives += [(run.sequence(GREEDY, 5), Past(accepted_ago=9.0 - i)) for i in range(4)]
    run.take_over(*lives)
    newcomer = run.sequence(GREEDY, 5)
    run.engine.add(newcomer)
    run.finish()
    assert [id for id in tried if id] == ["0", "1", "2", "3"]
    assert tried[-1] == ""
    assert all(len(run.of(seq, Finished)) == 1 for seq, _ in lives)


def test_who_is_tried_has_the_whole_step_to_itself(exact: Context) -> None:
    """Beside others its share of a step can be less than the piece in which exact mode computes a prompt."""
    run = Lives(engine(exact))
    decoding = run.sequence(GREEDY, 100)
    run.engine.add(decoding)
    while not decoding.decoding:
        run.step()
    lives = [(run.sequence(GREEDY, 5, prompt=PROMPT * 5), Past([5], is_started=True)) for _ in range(3)]
    run.take_over(*lives)
    for _ in range(60):
        run.step()
    assert all(len(run.of(seq, Finished)) == 1 for seq, _ in lives)
    run.engine.cancel(decoding.id)


def test_one_that_is_cancelled_while_it_is_tried_is_tried_no_more(exact: Context) -> None:
    tried: list[str] = []
    run = Lives(engine(exact, on_trial=tried.append))
    seq = run.sequence(GREEDY)
    run.take_over((seq, Past(is_started=True)))
    other = run.sequence(GREEDY, 2)
    run.engine.add(other)
    run.engine.cancel(seq.id)
    run.finish()
    assert tried == []
    assert run.of(seq, Finished)[0].stop_type == "cancelled"


def test_one_whose_client_is_back_is_not_suspected_and_takes_its_turn_after_those_who_wait(
    exact: Context,
) -> None:
    tried: list[str] = []
    run = Lives(engine(exact, n_slots=1, on_trial=tried.append))
    first = run.sequence(GREEDY)
    run.take_over((first, Past([5], is_started=True, is_parked=True, parks=1, parked_ago=1.0)))
    back = run.sequence(GREEDY)
    run.take_over((back, Past([5], is_started=True, accepted_ago=60.0, parked_ago=50.0, gone="client")))
    run.finish()
    assert back.id not in tried
    assert run.of(back, Preempted)[0].cause == "client"
    assert first.since < back.since
