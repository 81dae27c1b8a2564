"""The policy is a pure function: each rule is one state and the plan that must come out."""

from __future__ import annotations

import pytest

from inference.engine.scheduler import plan

from .pools import Seq, pool, prompt, waiting


def test_nothing_happens_to_residents_that_fit() -> None:
    a, b = Seq("a", 100), Seq("b", 50)
    p = plan(pool([a, b]))
    assert (p.park, p.resume, p.admit, p.park_queued) == ([], [], [], [])
    assert p.compute == [(a, 1), (b, 1)]


def test_prompts_share_a_step_equally_and_a_short_one_leaves_its_rest_to_the_others() -> None:
    short, long, longer = prompt("short", 4), prompt("long", 200), prompt("longer", 300)
    p = plan(pool([Seq("a", 10), longer, short, long]))
    assert {s.name: n for s, n in p.compute} == {"a": 1, "short": 4, "long": 18, "longer": 18}


def test_a_prompt_beside_a_decoding_neighbour_is_bounded_by_the_pace() -> None:
    a, new = Seq("a", 10), prompt("new", 200)
    assert plan(pool([a, new])).compute == [(a, 1), (new, 40)]


@pytest.mark.parametrize(("cells", "expected"), [(0, 128), (100, 28), (128, 128)])
def test_a_lone_prompt_is_always_cut_at_the_same_places(cells: int, expected: int) -> None:
    a = prompt("a", pending=300, cells=cells)
    assert plan(pool([a], prefill_tokens=17)).compute == [(a, expected)]


def test_a_step_never_takes_more_cells_than_are_free() -> None:
    a, new = Seq("a", 490), prompt("new", 200)
    assert sum(n for _, n in plan(pool([a, new])).compute) <= 22


def test_a_step_never_computes_more_than_a_batch() -> None:
    p = plan(pool([Seq("a", 10), prompt("new", 200)], step_tokens=8))
    assert sum(n for _, n in p.compute) == 8


def test_a_plan_changes_nothing() -> None:
    residents, parked = [Seq("a", 256), Seq("b", 256)], [waiting("p", 9)]
    plan(pool(residents, parked))
    assert [s.name for s in residents] == ["a", "b"]
    assert [s.name for s in parked] == ["p"]


def test_prompts_that_keep_nobodys_next_token_waiting_take_as_much_as_a_lone_one() -> None:
    a, b = prompt("a", 300), prompt("b", 300)
    assert plan(pool([a, b], n_cells=1024)).compute == [(a, 64), (b, 64)]
    c = Seq("c", 10)
    assert plan(pool([a, b, c], n_cells=1024)).compute == [(c, 1), (a, 20), (b, 20)]


def test_cells_of_one_that_leaves_are_room_for_the_steps_tokens() -> None:
    a, b, leaving = Seq("a", 300), Seq("b", 112), Seq("leaving", 100)
    p = plan(pool([a, b], leaving=[leaving]))
    assert (p.park, p.compute) == ([], [(a, 1), (b, 1)])


def test_one_that_moves_in_computes_nothing_and_its_cells_are_spoken_for() -> None:
    a, b, coming = Seq("a", 200), Seq("b", 100), Seq("coming", 10, 200, decoding=False, moving=True)
    p = plan(pool([a, b, coming]))
    assert (p.park, p.compute) == ([], [(a, 1), (b, 1)])
    coming.pending += 1  # now 200 + 100 + 211 leave one cell for two
    assert plan(pool([a, b, coming])).park == [(b, "pressure")]


def test_one_that_returns_computes_nothing_in_the_step_that_brings_it_in() -> None:
    a, head = Seq("a", 10), waiting("head", 20)
    p = plan(pool([a], parked=[head]))
    assert (p.resume, p.compute) == ([head], [(a, 1)])
