"""Residents that are parked for the head of the line: rotation, and higher priorities."""

from __future__ import annotations

from inference.engine.scheduler import Policy, plan

from .pools import Seq, pool, prompt, waiting


def test_a_resident_whose_turn_is_over_is_parked_for_a_head_that_waited_long_enough() -> None:
    a, head = Seq("a", 400), waiting("head", 400)
    assert plan(pool([a], [head], now=1.9)).park == []
    assert plan(pool([a], [head], now=2.0)).park == [(a, "rotation")]
    assert plan(pool([a], [head], now=1e6)).park == [(a, "rotation")]


def test_a_queued_head_gets_its_turn_as_well_when_there_are_more_chats_than_slots() -> None:
    residents = [Seq(str(i), 9, since=float(i)) for i in range(4)]
    p = plan(pool(residents, queued=[prompt("head", 9, since=1.0)], now=3.0))
    assert (p.park, p.admit) == ([(residents[0], "rotation")], [])


def test_there_is_no_rotation_when_it_is_off_or_nobody_can_be_parked() -> None:
    a, head = Seq("a", 400), waiting("head", 400)
    assert plan(pool([a], [head], now=9.0, rotate_after=0.0)).park == []
    assert plan(pool([a], [head], now=9.0, can_park=False)).park == []


def test_a_resident_has_its_whole_turn() -> None:
    a, head = Seq("a", 400, since=7.1), waiting("head", 400)
    assert plan(pool([a], [head], now=9.0)).park == []
    assert plan(pool([a], [head], now=9.2)).park != []


def test_a_turn_is_longer_where_a_park_costs_more() -> None:
    a, head = Seq("a", 2048), waiting("head", 400)
    assert plan(pool([a], [head], n_cells=2100, now=3.9)).park == []
    assert plan(pool([a], [head], n_cells=2100, now=4.0)).park != []
    assert plan(pool([Seq("a", 400)], [head], swaps=False, now=63.9)).park == []
    assert plan(pool([Seq("a", 400)], [head], swaps=False, now=64.0)).park != []


def test_the_longest_resident_goes_first_and_no_more_than_are_needed() -> None:
    small, big, other = Seq("small", 20, since=0.0), Seq("big", 300, since=1.0), Seq("other", 150, since=2.0)
    p = plan(pool([other, big, small], [waiting("head", 200)], now=9.0))
    assert p.park == [(big, "rotation")]


def test_nobody_is_parked_unless_that_makes_the_head_fit() -> None:
    a, b = Seq("a", 100), Seq("b", 300, since=8.0)
    assert plan(pool([a, b], [waiting("head", 300)], now=9.0)).park == []
    assert {s.name for s, _ in plan(pool([a, b], [waiting("head", 300)], now=10.0)).park} == {"b"}


def test_one_rotation_at_a_time() -> None:
    a, head = Seq("a", 200), waiting("head", 400)
    assert plan(pool([a], [head], leaving=[Seq("leaving", 200)], now=9.0)).park == []
    coming = Seq("coming", 10, 20, decoding=False, moving=True)
    assert plan(pool([a, coming], [head], now=9.0)).park == []


def test_the_place_made_by_rotation_is_the_heads_and_no_newcomers() -> None:
    leaving = [Seq("leaving", 100)]
    a, head, new = Seq("a", 10), waiting("head", 400), prompt("new", 5, since=9.0)
    assert plan(pool([a], [head], [new], leaving=leaving, now=9.0)).admit == []
    p = plan(pool([a], [head], [new], now=9.1))
    assert (p.resume, p.admit) == ([head], [new])


def test_growth_since_the_rotation_does_not_undo_it() -> None:
    a, b, head = Seq("a", 190), Seq("b", 200, since=1.0), waiting("head", 200)
    assert plan(pool([a, b], [head], now=9.0)).park == [(a, "rotation")]
    b.cells += 30
    assert plan(pool([b], [head], now=9.1)).resume == [head]


def test_one_parked_three_times_comes_to_its_next_token_before_it_is_rotated() -> None:
    filling, head = prompt("filling", 300, cells=50), waiting("head", 400)
    assert plan(pool([filling], [head], now=9.0)).park == [(filling, "rotation")]
    filling.parks = 3
    assert plan(pool([filling], [head], now=9.0)).park == []


def test_a_lower_priority_is_parked_for_a_higher_one_without_waiting_for_its_turn() -> None:
    low, high = Seq("low", 400, priority=1), prompt("high", 400, since=0.6)
    assert plan(pool([low], queued=[high], now=0.6)).park == [(low, "priority")]
    low.since = 0.2
    assert plan(pool([low], queued=[high], now=0.6)).park == []


def test_one_parked_three_times_has_its_whole_turn_also_from_a_higher_priority() -> None:
    low, high = Seq("low", 400, priority=1, parks=3), prompt("high", 400)
    assert plan(pool([low], queued=[high], now=1.9)).park == []
    assert plan(pool([low], queued=[high], now=2.0)).park != []


def test_the_lowest_priority_is_parked_first() -> None:
    low, lower, high = Seq("low", 9, priority=1), Seq("lower", 9, priority=2, since=1.0), prompt("high", 9)
    p = plan(pool([low, lower], queued=[high], n_slots=2, now=9.0))
    assert p.park == [(lower, "priority")]


def test_nobody_is_rotated_for_a_lower_priority_until_that_has_waited_long() -> None:
    normal, low = Seq("normal", 400), waiting("low", 400, priority=1)
    seconds = Policy().level_s
    assert plan(pool([normal], [low], now=seconds - 1)).park == []
    assert plan(pool([normal], [low], now=seconds)).park == [(normal, "rotation")]


def test_waiting_long_does_not_shorten_the_turns_of_equals() -> None:
    a, head = Seq("a", 400, since=1e6 - 1.9), waiting("head", 400)
    assert plan(pool([a], [head], now=1e6)).park == []
