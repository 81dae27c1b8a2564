"""Computed prompts in host RAM: what is loaded instead of computed, for whom, and that no text changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inference.engine import prefix_cache
from inference.engine.engine import Engine
from inference.engine.llama import Context
from inference.engine.sampling import Sampler
from inference.engine.sequence import Sequence
from inference.engine.text import TextAssembler
from inference.messages import Finished, Timings

from .conftest import BAKER, FISHER, FOX, GREEDY, KNIGHT, Run

Make = Callable[..., Engine]
CHUNK = 32
STORY, OTHER = [*range(1000, 1100)], [*range(3000, 3100)]  # 6 blocks and 4 tokens; 3 lone chunks and 4


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_cache, "BLOCK", 16)


@pytest.fixture
def make(make_tiny_engine: Make) -> Make:
    def engine(n_cells: int = 1024, **kwargs: object) -> Engine:
        return make_tiny_engine(n_cells, **{"cache_ram": -1, "lone_chunk": CHUNK, **kwargs})

    return engine


class Asked(Run):
    """A run of which each chat has an account."""

    def ask(self, tokens: list[int], n: int = 3, account: str = "ada", use_cache: bool = True) -> Sequence:
        sampler = Sampler(self.engine.ctx.model, GREEDY)
        sampler.accept_prompt(tokens)
        seq = Sequence(
            str(len(self.events)), list(tokens), sampler, TextAssembler(()), n,
            account=account, use_cache=use_cache,
        )  # fmt: skip
        self.events[seq.id] = []
        self.engine.add(seq)
        return seq

    def answered(self, *args: object, **kwargs: object) -> Sequence:
        seq = self.ask(*args, **kwargs)  # type: ignore[arg-type]
        self.finish()
        return seq

    def timings(self, seq: Sequence) -> Timings:
        [finished] = self.of(seq, Finished)
        return finished.timings

    def cached(self, *args: object, **kwargs: object) -> int:
        """How many tokens of a new chat's prompt came from the cache."""
        return self.timings(self.answered(*args, **kwargs)).cache_n


def test_the_next_turn_computes_only_what_is_new(make: Make) -> None:
    run = Asked(make())
    first = run.answered(STORY)
    second = run.answered([*first.tokens, *OTHER[:20]])
    assert (run.timings(second).cache_n, run.timings(second).prompt_n) == (96, 27)
    [finished] = run.of(second, Finished)
    assert finished.prompt_tokens == 123
    assert run.engine.counters.prompt_tokens_total == 100 + 27
    assert run.engine.counters.prompt_tokens_cached_total == 96
    assert run.cached([*second.tokens, *OTHER[20:60]]) == 96  # as many chunks as the second's prompt has


def test_what_ends_nothing_is_held_but_host_ram(make: Make) -> None:
    engine = make()
    Asked(engine).answered(STORY)
    assert (engine.used_cells, engine.ctx.cells(0)) == (0, 0)
    assert engine.cached_bytes > 0


def test_the_last_token_is_computed_however_much_is_known(make: Make) -> None:
    run = Asked(make())
    run.answered(STORY[:96])
    assert run.cached(STORY[:96]) == 64


@pytest.mark.parametrize("every", [0, 5])
def test_alone_no_text_depends_on_the_cache(make_engine: Make, every: int) -> None:
    """On the real model: two turns, with it and without."""
    texts = []
    more = make_engine(1024).ctx.model.tokenize(FISHER, add_special=False, parse_special=False)
    for cache_ram in (0, -1):
        run = Run(make_engine(1024, lone_chunk=CHUNK, cache_ram=cache_ram, preempt_every=every))
        first = run.finish_one(" ".join([KNIGHT, FISHER, BAKER, FOX] * 3), 12)
        second = run.finish_one([*first.tokens, *more], 40)
        texts.append((first.tokens, second.tokens))
        assert (second.cached > 0) == (cache_ram < 0)
    assert texts[0] == texts[1]


def test_accounts_share_nothing(make: Make) -> None:
    run = Asked(make())
    run.answered(STORY, account="ada")
    assert run.cached(STORY, account="bob") == 0
    assert run.cached(STORY, account="ada") == 96


def test_other_words_before_it_make_another_prompt(make: Make) -> None:
    run = Asked(make())
    run.answered(STORY)
    assert run.cached([999, *STORY]) == 0
    assert run.cached([*STORY[:40], *OTHER]) == 32


def test_who_wants_no_cache_neither_uses_it_nor_fills_it(make: Make) -> None:
    run = Asked(make())
    assert run.cached(STORY, use_cache=False) == 0
    assert run.engine.cached_bytes == 0
    run.answered(STORY)
    assert run.cached(STORY, use_cache=False) == 0


def test_alone_only_what_was_computed_alone_is_taken(make: Make) -> None:
    run = Asked(make())
    neighbour = run.ask(OTHER, -1)
    run.step()
    seq = run.ask(STORY, 1)
    while not run.of(seq, Finished):
        run.step()
    again = run.ask(STORY, 1)  # beside the same neighbour
    while not run.of(again, Finished):
        run.step()
    run.engine.cancel(neighbour.id)
    assert run.timings(again).cache_n == 96
    assert run.cached(STORY) == 0  # now it is computed alone, and that is kept instead
    assert run.cached(STORY) == 96


def test_the_least_recently_used_go_first_from_their_ends_on(make: Make) -> None:
    engine = make()
    run = Asked(engine)
    run.answered(STORY[:65])
    block = engine.cached_bytes // 4
    run = Asked(make(cache_ram=10 * block))
    run.answered(STORY[:65])
    run.answered(OTHER[:65])
    assert run.cached(STORY[:65]) == 64
    run.answered([*range(5000, 5065)])  # two blocks of OTHER make way
    assert run.engine.cached_bytes == 10 * block
    assert run.cached(OTHER[:65]) == 32
    assert run.cached(STORY[:65]) >= 32


def test_a_prompt_larger_than_the_cache_keeps_its_start(make: Make) -> None:
    engine = make()
    Asked(engine).answered(STORY)
    run = Asked(make(cache_ram=engine.cached_bytes // 3))
    run.answered(STORY)
    assert run.cached(STORY) == 32


def test_what_is_computed_again_after_a_park_is_loaded(make: Make) -> None:
    texts = []
    for cache_ram in (0, -1):
        run = Asked(make(cache_ram=cache_ram, preempt_ram=1, preempt_every=4))
        seq = run.answered(STORY, 10)
        assert run.timings(seq).cache_n == 0  # of its prompt nothing was known
        texts.append(seq.tokens)
        n_redone = run.engine.counters.recomputed_tokens_total
        assert (n_redone < 20) == (cache_ram < 0)
    assert texts[0] == texts[1]


def test_where_the_others_need_the_cells_a_prompt_is_computed(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Asked(make())
    run.answered(STORY)
    monkeypatch.setattr(Context, "load_piece", lambda *_: False)
    seq = run.answered(STORY)
    assert run.timings(seq).cache_n == 0
    assert seq.generated == 3


def test_a_park_in_the_midst_of_loading_loses_nothing(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_cache, "NOBODY_DECODES_S", 0)  # a block a step
    run = Asked(make())
    first = run.answered(STORY)
    seq = run.ask(STORY)
    run.step()
    assert 0 < seq.cells < 96
    assert run.engine.hold(seq.id) == ""
    while seq.cells:
        run.step()
    run.engine.release(seq.id)
    run.finish()
    assert run.timings(seq).cache_n == 96
    assert seq.tokens == first.tokens


def test_a_state_that_cannot_be_taken_apart_is_not_kept(exact: Context, engine_over: Make) -> None:
    run = Asked(engine_over(exact, 256, cache_ram=-1))
    run.answered(STORY)
    assert run.engine.cached_bytes == run.cached(STORY) == 0


def test_block_keys_tell_accounts_and_places_apart() -> None:
    keys = prefix_cache._keys
    prompts = [("a", STORY), ("ab", STORY), ("a", OTHER), ("a", [*STORY[:16], *STORY[:16]])]
    made = [
        keys(Sequence("", tokens, None, None, 1, account=account))  # type: ignore[arg-type]
        for account, tokens in prompts
    ]
    assert made[0][0] == made[3][0]
    assert len({key for one in made for key in one}) == sum(map(len, made)) - 1


def test_the_cache_is_off_without_ram(make: Make) -> None:
    run = Asked(make(cache_ram=0))
    run.answered(STORY)
    assert run.engine.cached_bytes == run.cached(STORY) == 0
