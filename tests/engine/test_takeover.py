"""A sequence of a worker that is gone goes on as if nothing had happened, from what its log holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inference.engine.llama import Batch, Context, Model
from inference.engine.past import Past
from inference.engine.sampling import Sampler
from inference.engine.sequence import State
from inference.messages import (
    Event,
    Finished,
    Resumed,
    SamplingParams,
    Token,
)

from .conftest import GREEDY
from .lives import PROMPT, Lives, N, engine

SAMPLED = SamplingParams(temperature=1.2, seed=7, ignore_eos=True)
PENALISED = SamplingParams(
    temperature=0.9, seed=11, repeat_penalty=1.4, repeat_last_n=5, presence_penalty=0.5, ignore_eos=True
)
N_CTX = 64


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
