"""The policy is a pure function: each rule is one state and the plan that must come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from inference.engine.scheduler import Pool, margin_to_join, margin_to_return, plan, victim


@dataclass(eq=False)
class Seq:
    name: str
    cells: int = 0
    pending: int = 1
    decoding: bool = True
    parks: int = 0
    park_due: bool = False

    def __repr__(self) -> str:
        return self.name


def prompt(name: str, pending: int, cells: int = 0, **kwargs: Any) -> Seq:
    return Seq(name, cells, pending, decoding=False, **kwargs)


def pool(residents: list[Seq], parked: list[Seq] = [], queued: list[Seq] = [], **kwargs: Any) -> Pool[Seq]:  # noqa: B006
    numbers: dict[str, Any] = {
        "n_cells": 512,
        "n_slots": 4,
        "step_tokens": 512,
        "prefill_tokens": 40,
        "lone_chunk": 128,
    }
    return Pool(
        residents=residents, parked=parked, queued=queued, n_parked=len(parked), **{**numbers, **kwargs}
    )


def test_nothing_happens_to_residents_that_fit() -> None:
    a, b = Seq("a", 100), Seq("b", 50)
    p = plan(pool([a, b]))
    assert (p.park, p.resume, p.admit, p.park_queued) == ([], [], [], [])
    assert p.compute == [(a, 1), (b, 1)]


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


def test_the_head_returns_first_and_nobody_passes_a_head_that_does_not_fit() -> None:
    head, small = Seq("head", 300), Seq("small", 10)
    p = plan(pool([Seq("a", 250)], parked=[head, small]))
    assert p.resume == []
    p = plan(pool([Seq("a", 60)], parked=[head, small]))
    assert p.resume == [head, small]


def test_who_returns_leaves_room_to_grow_so_that_nobody_is_parked_again_at_once() -> None:
    a = Seq("a", 200)
    assert margin_to_return(pool([a]), [a]) == 128
    assert plan(pool([a], parked=[Seq("head", 183)])).resume == []  # 200 + 1 + 183 + 1 + 128 > 512
    assert plan(pool([a], parked=[Seq("head", 182)])).resume != []


def test_a_newcomer_leaves_a_small_margin() -> None:
    a = Seq("a", 200)
    assert margin_to_join(pool([a]), [a]) == 8
    assert plan(pool([a], queued=[prompt("new", 304)])).admit == []  # 200 + 1 + 304 + 8 > 512
    assert plan(pool([a], queued=[prompt("new", 303)])).admit != []


def test_the_margin_is_waived_when_nobody_is_resident() -> None:
    head = Seq("head", 511)
    assert plan(pool([], parked=[head])).resume == [head]


def test_nobody_returns_in_a_step_that_parks_under_pressure() -> None:
    assert plan(pool([Seq("a", 256), Seq("b", 256)], parked=[Seq("head", 4)])).resume == []


def test_the_rest_of_a_resident_prompt_is_spoken_for() -> None:
    filling = prompt("filling", pending=400, cells=50)
    assert plan(pool([filling], queued=[prompt("new", 60)])).admit == []
    assert plan(pool([filling], queued=[prompt("new", 50)])).admit != []


def test_the_queue_is_admitted_in_order_while_slots_are_free() -> None:
    new = [prompt(str(i), 20) for i in range(4)]
    p = plan(pool([Seq("a", 10), Seq("b", 10)], queued=new))
    assert p.admit == new[:2]


def test_a_prompt_that_finds_no_room_is_parked_before_its_first_token() -> None:
    new = prompt("new", 470)
    p = plan(pool([Seq("a", 60)], queued=[new]))
    assert (p.admit, p.park_queued) == ([], [new])


def test_nobody_is_admitted_past_a_parked_sequence() -> None:
    new = prompt("new", 5)
    p = plan(pool([Seq("a", 300)], parked=[Seq("head", 400)], queued=[new]))
    assert (p.admit, p.park_queued) == ([], [new])


def test_a_parked_sequence_keeps_its_place_among_the_slots() -> None:
    parked = [Seq("p", 400), Seq("q", 400)]
    new = [prompt("new", 5)]
    assert plan(pool([Seq("a", 300), Seq("b", 5)], parked=parked, queued=new)).park_queued == []


def test_a_prompt_beside_a_decoding_neighbour_is_bounded_by_the_pace() -> None:
    a, new = Seq("a", 10), prompt("new", 200)
    assert plan(pool([a, new])).compute == [(a, 1), (new, 40)]


def test_prompts_share_a_step_equally_and_a_short_one_leaves_its_rest_to_the_others() -> None:
    short, long, longer = prompt("short", 4), prompt("long", 200), prompt("longer", 300)
    p = plan(pool([Seq("a", 10), longer, short, long]))
    assert {s.name: n for s, n in p.compute} == {"a": 1, "short": 4, "long": 18, "longer": 18}


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
    residents, parked = [Seq("a", 256), Seq("b", 256)], [Seq("p", 9)]
    plan(pool(residents, parked))
    assert [s.name for s in residents] == ["a", "b"]
    assert [s.name for s in parked] == ["p"]
