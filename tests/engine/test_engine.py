"""Generation on the real model: where it ends, what it counts, and that neighbours do not mix."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest

from inference.engine.engine import Engine
from inference.engine.llama import Context
from inference.messages import SamplingParams

from .conftest import BAKER, FISHER, FOX, GREEDY, KNIGHT, Run

Make = Callable[..., Engine]


def test_the_same_seed_gives_the_same_text_and_another_seed_another(make_engine: Make) -> None:
    def text(seed: int) -> str:
        run = Run(make_engine(512))
        return run.text(run.finish_one(BAKER, 24, SamplingParams(temperature=1.0, seed=seed)))

    assert text(7) == text(7)
    assert text(7) != text(8)


def test_short_neighbours_do_not_change_a_greedy_text(make_engine: Make) -> None:
    alone = Run(make_engine(1024))
    reference = alone.text(alone.finish_one(KNIGHT, 32))
    run = Run(make_engine(1024))
    seqs = [run.add(p, 32) for p in (FOX, KNIGHT, FISHER, BAKER)]
    run.finish()
    assert run.text(seqs[1]) == reference


def test_it_ends_at_max_tokens(make_engine: Make) -> None:
    run = Run(make_engine(512))
    seq = run.finish_one(KNIGHT, 5)
    end = run.events[seq.id][-1]
    assert (end.stop_type, end.completion_tokens, end.truncated) == ("limit", 5, False)


def test_zero_tokens_evaluates_the_prompt_and_ends(make_engine: Make) -> None:
    run = Run(make_engine(512))
    seq = run.finish_one(KNIGHT, 0)
    end = run.events[seq.id][-1]
    assert (end.completion_tokens, end.prompt_tokens, end.stop_type) == (0, seq.n_prompt, "limit")


def test_it_ends_when_its_context_is_full_and_says_so(make_engine: Make) -> None:
    run = Run(make_engine(64))
    seq = run.finish_one(KNIGHT, -1)
    end = run.events[seq.id][-1]
    assert (end.stop_type, end.truncated) == ("limit", True)
    assert len(seq.tokens) == 64


def test_a_stop_string_ends_it_and_is_not_shown(make_engine: Make) -> None:
    free = Run(make_engine(512))
    text = free.text(free.finish_one(KNIGHT, 40))
    word = text[25:32]
    run = Run(make_engine(512))
    seq = run.finish_one(KNIGHT, 40, GREEDY, (word, "never said"))
    end = run.events[seq.id][-1]
    assert (end.stop_type, end.stopping_word) == ("word", word)
    assert run.text(seq) == text[: text.index(word)]


def test_the_end_of_the_answer_ends_it_unless_that_is_ignored(make_engine: Make) -> None:
    prompt = "<|im_start|>user\nSay only the word yes.<|im_end|>\n<|im_start|>assistant\n"
    run = Run(make_engine(512))
    seq = run.finish_one(prompt, 200, SamplingParams(temperature=0))
    assert run.events[seq.id][-1].stop_type == "eos"
    n = seq.generated + 5
    run = Run(make_engine(512))
    seq = run.finish_one(prompt, n, SamplingParams(temperature=0, ignore_eos=True))
    assert run.events[seq.id][-1].completion_tokens == n


def test_a_bias_can_forbid_and_force_a_token(make_engine: Make) -> None:
    free = Run(make_engine(512))
    seq = free.finish_one(KNIGHT, 1)
    first = seq.tokens[-1]
    banned = Run(make_engine(512))
    seq = banned.finish_one(KNIGHT, 1, SamplingParams(temperature=0, logit_bias=((first, float("-inf")),)))
    assert seq.tokens[-1] != first
    forced = Run(make_engine(512))
    seq = forced.finish_one(KNIGHT, 3, SamplingParams(temperature=0, logit_bias=((1234, 100.0),)))
    assert seq.tokens[-3:] == [1234] * 3


def test_a_bias_outside_the_vocabulary_is_an_error(make_engine: Make) -> None:
    with pytest.raises(ValueError, match="not in the vocabulary"):
        Run(make_engine(512)).add(KNIGHT, 1, SamplingParams(logit_bias=((10**6, 1.0),)))


def test_a_repeat_penalty_changes_a_repeating_text(make_engine: Make) -> None:
    prompt = "one two three one two three one two three one two"
    plain = Run(make_engine(512))
    a = plain.finish_one(prompt, 12)
    penalised = Run(make_engine(512))
    b = penalised.finish_one(prompt, 12, SamplingParams(temperature=0, repeat_penalty=1.8, ignore_eos=True))
    assert a.tokens != b.tokens


@pytest.mark.parametrize(
    "bias", [(), ((260, -5.0), (" the", 2.5), (30, float("-inf")))], ids=["plain", "biased"]
)
def test_argmax_and_the_native_greedy_sampler_choose_the_same(
    make_engine: Make, bias: tuple[tuple[int | str, float], ...]
) -> None:
    ours = SamplingParams(temperature=0, ignore_eos=True, logit_bias=bias)
    a = Run(make_engine(512)).finish_one(FISHER, 30, ours)
    # A penalty of nothing sends the same request through llama.cpp's own chain.
    b = Run(make_engine(512)).finish_one(FISHER, 30, replace(ours, presence_penalty=1e-9))
    assert a.tokens == b.tokens


def test_more_chats_than_slots_all_start_in_the_order_of_arrival_and_finish(make_tiny_engine: Make) -> None:
    engine = make_tiny_engine(512, n_slots=2)
    run = Run(engine)
    seqs = [run.add(p, 6) for p in (KNIGHT, FOX, FISHER, BAKER, KNIGHT)]
    order: list[str] = []
    while not engine.idle:
        assert len(engine.residents) <= 2
        run.step()
        order += [s.id for s in seqs if s.started and s.id not in order]
    assert order == [s.id for s in seqs]
    assert all(s.generated == 6 for s in seqs)


def test_more_slots_than_a_batch_was_to_have_tokens_still_decode_together(
    tiny_context: Callable[..., Context],
) -> None:
    with closing(Context(tiny_context().model, n_ctx=256, n_seq_max=3, n_batch=1, n_threads=1)) as context:
        run = Run(Engine(context, n_cells=256, n_slots=3, n_ctx_seq=256))
        seqs = [run.add(prompt, 20) for prompt in (KNIGHT, FOX, FISHER)]
        run.finish()
    assert [s.generated for s in seqs] == [20] * 3


def test_a_prompt_is_processed_in_chunks_beside_a_decoding_neighbour(make_engine: Make) -> None:
    engine = make_engine(1024)
    run = Run(engine)
    neighbour = run.add(KNIGHT, 100)
    for _ in range(5):
        run.step()
    long = run.add(" ".join([FISHER] * 12), 1)
    steps = 0
    while not run.of(long, type(run.events["0"][0])) or long.cells < long.n_prompt:
        before = neighbour.generated
        run.step()
        assert neighbour.generated == before + 1
        steps += 1
        if long.generated:
            break
    assert steps > 2
