"""What a log tells of a life with another worker."""

from __future__ import annotations

from inference.engine.past import Past
from inference.messages import (
    Accepted,
    Event,
    Preempted,
    Released,
    Resumed,
    Started,
    Token,
)


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
