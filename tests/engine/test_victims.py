"""Who is parked under pressure, by force or by hand."""

from __future__ import annotations

from inference.engine.scheduler import plan, victim

from .pools import Seq, pool, prompt, waiting


def test_the_smallest_that_is_not_the_leader_is_parked_when_cells_run_out() -> None:
    a, b, c = Seq("a", 300), Seq("b", 120), Seq("c", 91)
    p = plan(pool([a, b, c]))
    assert p.park == [(c, "pressure")]
    assert p.compute == [(a, 1), (b, 1)]


def test_nobody_is_parked_while_each_resident_finds_a_cell() -> None:
    assert plan(pool([Seq("a", 300), Seq("b", 120), Seq("c", 89)])).park == []


def test_one_parked_three_times_is_passed_over_while_there_is_another() -> None:
    a, b, c = Seq("a", 300), Seq("b", 120), Seq("c", 92, parks=3)
    assert victim([a, b, c]) is b
    b.parks = 3
    assert victim([a, b, c]) is c


def test_the_leader_is_never_the_victim() -> None:
    a, b = Seq("a", 300), Seq("b", 212, parks=9)
    assert victim([a, b]) is b


def test_a_prompt_in_progress_can_be_the_victim() -> None:
    a, b = Seq("a", 500), prompt("b", pending=100, cells=12)
    assert plan(pool([a, b])).park == [(b, "pressure")]


def test_a_lone_resident_is_never_parked() -> None:
    assert plan(pool([Seq("a", 512)])).park == []


def test_a_forced_park_is_carried_out_and_not_undone_in_the_same_step() -> None:
    a = Seq("a", 10, park_due=True)
    p = plan(pool([a]))
    assert p.park == [(a, "forced")]
    assert p.resume == []
    assert p.compute == []


def test_nobody_returns_in_a_step_that_parks_under_pressure() -> None:
    assert plan(pool([Seq("a", 256), Seq("b", 256)], parked=[waiting("head", 4)])).resume == []


def test_one_that_moves_in_is_a_victim_only_when_there_is_no_other() -> None:
    a, b, coming = Seq("a", 300), Seq("b", 100), Seq("coming", 10, 20, decoding=False, moving=True)
    assert victim([a, b, coming]) is b
    assert victim([a, coming]) is coming


def test_nobody_is_parked_when_that_is_switched_off_but_the_victim_is_named() -> None:
    a, b = Seq("a", 300, park_due=True), Seq("b", 212, held=True)
    assert plan(pool([a, b], can_park=False)).park == [(b, "pressure")]


def test_under_pressure_the_lowest_priority_goes_even_if_it_has_the_most_cells() -> None:
    low, a, b = Seq("low", 300, priority=1), Seq("a", 120), Seq("b", 92)
    assert victim([low, a, b]) is low
    assert victim([a, b]) is b


def test_a_resident_that_an_operator_holds_is_parked_by_hand() -> None:
    a, b = Seq("a", 10, held=True), Seq("b", 10, held=True, park_due=True)
    assert plan(pool([a, b])).park == [(a, "hand"), (b, "hand")]


def test_who_is_held_is_passed_over_and_never_the_head() -> None:
    held, next_one, new_held = (
        waiting("held", 500, held=True),
        waiting("next", 9),
        prompt("new", 9, held=True),
    )
    p = plan(pool([Seq("a", 60)], parked=[held, next_one], queued=[new_held], now=100.0))
    assert (p.park, p.resume, p.admit, p.park_queued) == ([], [next_one], [], [])
