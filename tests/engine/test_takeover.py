"""A sequence of a worker that is gone goes on as if nothing had happened, from what its log holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from inference.engine.engine import Engine
from inference.engine.llama import Batch, Context, Model
from inference.engine.past import Past
from inference.engine.sampling import Sampler
from inference.engine.sequence import Sequence, State
from inference.engine.text import TextAssembler
from inference.messages import (
    Accepted,
    Event,
    Finished,
    Preempted,
    Released,
    Resumed,
    SamplingParams,
    Started,
    Token,
)

from . import tiny
from .conftest import GREEDY, Run

PROMPT = [*range(1000, 1012)]
SAMPLED = SamplingParams(temperature=1.2, seed=7, ignore_eos=True)
PENALISED = SamplingParams(
    temperature=0.9, seed=11, repeat_penalty=1.4, repeat_last_n=5, presence_penalty=0.5, ignore_eos=True
)
N = 20
N_CTX = 64


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory, model: Model) -> Iterator[Context]:
    """In which a text depends on nothing but its request."""
    path = tmp_path_factory.mktemp("exact") / "tiny.gguf"
    tiny.write(path, Path(model.path))
    context = Context(Model(str(path)), n_ctx=256, n_seq_max=4, n_batch=256, n_threads=1, exact=True)
    yield context
    context.close()


class Lives(Run):
    """A run that begins with what another worker left."""

    def sequence(
        self, sampling: SamplingParams, n: int = N, stop: tuple[str, ...] = (), prompt: list[int] = PROMPT
    ) -> Sequence:
        sampler = Sampler(self.engine.ctx.model, sampling)
        sampler.accept_prompt(prompt)
        seq = Sequence(str(len(self.events)), list(prompt), sampler, TextAssembler(stop), n)
        self.events[seq.id] = []
        return seq

    def take_over(self, *lives: tuple[Sequence, Past]) -> None:
        self.engine.take_over(lives)
        for id, event in self.engine.drain():
            self.events[id].append(event)


def engine(context: Context, **kwargs: object) -> Engine:
    return Engine(context, **{"n_cells": 256, "n_slots": 4, "n_ctx_seq": 256, **kwargs})  # type: ignore[arg-type]


def undisturbed(
    context: Context, sampling: SamplingParams, n: int = N, stop: tuple[str, ...] = (), **kwargs: object
) -> list[Event]:
    run = Lives(engine(context, **kwargs))
    seq = run.sequence(sampling, n, stop)
    run.engine.add(seq)
    return run.finish().events[seq.id]


def tokens_of(events: list[Event]) -> list[Token]:
    return [event for event in events if isinstance(event, Token)]


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Token | Finished))


def half_characters(model: Model) -> SamplingParams:
    """By which every second token or so is half a character."""
    halves = [t for t in range(1000) if not model.piece(t).isascii()]
    return replace(SAMPLED, logit_bias=tuple((token, 5.0) for token in halves))


@pytest.mark.parametrize("params", [GREEDY, SAMPLED, PENALISED, half_characters])
def test_from_every_token_on_it_is_what_it_would_have_been(exact: Context, params: Any) -> None:
    sampling = params(exact.model) if callable(params) else params
    whole = undisturbed(exact, sampling)
    tokens = tokens_of(whole)
    assert ("" in [token.text for token in tokens]) == (params is half_characters)
    for k in range(N):
        run = Lives(engine(exact))
        seq = run.sequence(sampling)
        run.take_over((seq, Past([token.token for token in tokens[:k]], is_started=True, slot=1)))
        rest = run.finish().events[seq.id]
        assert run.kinds(seq) == ["preempted", "resumed", "finished"]
        assert tokens_of(rest) == tokens[k:]
        assert text_of(whole) == text_of([*tokens[:k], *rest])


def test_a_stop_string_is_found_across_the_two_lives(exact: Context) -> None:
    stop = (text_of(undisturbed(exact, SAMPLED))[6:9],)
    whole = undisturbed(exact, SAMPLED, stop=stop)
    assert isinstance(whole[-1], Finished)
    assert whole[-1].stopping_word == stop[0]
    tokens = tokens_of(whole)
    for k in range(len(tokens)):
        run = Lives(engine(exact))
        seq = run.sequence(SAMPLED, stop=stop)
        run.take_over((seq, Past([token.token for token in tokens[:k]], is_started=True)))
        rest = run.finish().events[seq.id]
        assert text_of(whole) == text_of([*tokens[:k], *rest])
        assert run.of(seq, Finished)[0].stopping_word == stop[0]


def test_random_numbers_go_on_also_where_one_candidate_was_left(exact: Context) -> None:
    """Such a choice takes a number, too."""
    lone = SamplingParams(temperature=1.0, top_k=1, seed=3, ignore_eos=True)
    free = SamplingParams(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=3, ignore_eos=True)
    model = exact.model
    batch = Batch(4)
    batch.add([1000], 0, 0, True)
    exact.decode(batch)
    try:
        for params in (lone, free):
            drawn, replayed = Sampler(model, params), Sampler(model, params)
            first = [drawn.sample(exact, 0) for _ in range(9)]
            replayed.replay(first)
            assert [drawn.sample(exact, 0) for _ in range(9)] == [replayed.sample(exact, 0) for _ in range(9)]
    finally:
        exact.remove(0)


@pytest.mark.parametrize("k", [0, 1, 40, 51, 52, 53, 90])
@pytest.mark.parametrize("n_keep", [0, 4, -1])
def test_after_context_shifts_it_has_the_same_tokens(exact: Context, k: int, n_keep: int) -> None:
    flags = {"n_ctx_seq": N_CTX, "context_shift": True}
    first = Lives(engine(exact, **flags))
    before = first.sequence(GREEDY, 120)
    before.n_keep = n_keep
    first.engine.add(before)
    while len(first.of(before, Token)) < k:
        first.step()
    run = Lives(engine(exact, **flags))
    seq = run.sequence(GREEDY, 120)
    seq.n_keep = n_keep
    run.take_over((seq, Past([e.token for e in first.of(before, Token)], is_started=True)))
    assert seq.generated == before.generated
    if len(before.tokens) < N_CTX:  # else the one has already forgotten what the other is about to
        assert (seq.tokens, seq.shifted) == (before.tokens, before.shifted)
    first.engine.cancel(before.id)
    end = run.finish().of(seq, Finished)[0]
    assert (end.completion_tokens, end.truncated, end.stop_type) == (120, True, "limit")


@pytest.mark.parametrize("ending", ["limit", "word", "eos"])
def test_one_that_had_its_last_token_ends_at_once(exact: Context, ending: str) -> None:
    free = SamplingParams(temperature=0)
    tokens = [token.token for token in tokens_of(undisturbed(exact, GREEDY, 6))]
    stop: tuple[str, ...] = ()
    if ending == "eos":
        tokens.append(min(exact.model.eog))
    if ending == "word":
        stop = (text_of(undisturbed(exact, GREEDY, 6))[-1],)
    run = Lives(engine(exact))
    seq = run.sequence(free, 6 if ending == "limit" else -1, stop)
    run.take_over((seq, Past(tokens, is_started=True, slot=2, parks=1)))
    assert run.kinds(seq) == ["finished"]
    end = run.of(seq, Finished)[0]
    assert (end.stop_type, end.completion_tokens, end.parks) == (ending, len(tokens), 1)
    assert run.engine.idle


def test_one_that_was_queued_is_queued_and_one_that_was_parked_is_parked(exact: Context) -> None:
    run = Lives(engine(exact))
    queued, parked, held = run.sequence(GREEDY), run.sequence(GREEDY), run.sequence(GREEDY)
    run.take_over(
        (queued, Past(accepted_ago=5.0)),
        (parked, Past([5], is_started=True, is_parked=True, cause="pressure", parks=1, parked_ago=3.0)),
        (held, Past([5], is_started=True, is_parked=True, is_held=True, cause="hand", parks=1)),
    )
    assert [s.state for s in (queued, parked, held)] == [State.QUEUED, State.PARKED, State.PARKED]
    run.finish()
    assert run.kinds(queued) == ["started", "finished"]
    assert run.kinds(parked) == ["resumed", "finished"]
    assert run.kinds(held) == ["released", "resumed", "finished"]
    assert run.of(parked, Resumed)[0].waited >= 3.0


def test_what_it_used_before_is_counted_once(exact: Context) -> None:
    run = Lives(engine(exact))
    seq = run.sequence(GREEDY)
    past = Past(
        tokens=[5] * 10,
        is_started=True,
        slot=3,
        parks=2,
        parked_s=1.5,
        prompt_s=0.25,
        decode_s=4.0,
        accepted_ago=9.0,
        first_token_ago=8.0,
        parked_ago=1.0,
    )
    run.take_over((seq, past))
    end = run.finish().of(seq, Finished)[0]
    assert (end.prompt_tokens, end.completion_tokens, end.parks) == (len(PROMPT), N, 3)
    assert end.parked_s >= 1.5 + 1.0
    assert end.ttft_s == pytest.approx(1.0)
    assert end.timings.prompt_ms == 250.0
    assert end.timings.predicted_n == N
    assert (
        4000.0 < end.timings.predicted_ms < 4000.0 + 1000 * sum(run.of(seq, Resumed)[0].waited for _ in "1")
    )
    assert run.engine.counters.prompt_tokens_total == 0
    assert run.engine.counters.tokens_predicted_total == N - 10


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


# --- what a log tells -------------------------------------------------------------------------------


def test_the_times_of_a_life_add_up() -> None:
    past = Past.of(
        [
            (Accepted(3, 77, 9), 100.0),
            (Started(1), 102.0),
            (Preempted(1, "pressure", 2, 0), 103.0),
            (Resumed(0, 4.0), 107.0),
            (Token(5, "a"), 108.0),
            (Token(6, "b"), 109.0),
            (Preempted(0, "hand", 2, 0), 111.0),
        ],
        120.0,
    )
    assert (past.seed, past.tokens, past.slot, past.parks) == (77, [5, 6], 0, 2)
    assert (past.is_started, past.is_parked, past.is_held, past.is_queued) == (True, True, True, False)
    assert (past.prompt_s, past.decode_s, past.parked_s) == (2.0, 3.0, 4.0)
    assert (past.accepted_ago, past.first_token_ago, past.parked_ago) == (20.0, 12.0, 9.0)


def test_one_that_ran_is_parked_since_it_was_last_heard_of() -> None:
    past = Past.of([(Accepted(3, 1, 9), 1.0), (Started(1), 2.0), (Token(5, ""), 3.0)], 10.0)
    assert (past.is_parked, past.is_queued, past.parked_ago) == (False, False, 7.0)
    assert Past.of([(Accepted(3, 1, 9), 1.0)], 10.0).is_queued
    held: list[tuple[Event, float]] = [(Preempted(1, "hand", 2, 0), 1.0), (Released(), 2.0)]
    assert not Past.of(held, 3.0).is_held


def test_a_prompt_that_was_cut_short_counts_when_it_is_processed_again() -> None:
    past = Past.of([(Accepted(3, 1, 9), 1.0), (Started(1), 2.0), (Preempted(1, "pressure", 1, 0), 5.0)], 9.0)
    assert (past.prompt_s, past.decode_s) == (0.0, 0.0)
