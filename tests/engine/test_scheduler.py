"""The policy is a pure function: each rule is one state and the plan that must come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from inference.engine.scheduler import Policy, Pool, join_margin, line_key, plan, return_margin, victim


@dataclass(eq=False)
class Seq:
    name: str
    cells: int = 0
    pending: int = 1
    decoding: bool = True
    parks: int = 0
    park_due: bool = False
    moving: bool = False
    held: bool = False
    priority: int = 0
    since: float = 0.0

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
        "now": 0.0,
        "rotate_after": 2.0,
        "can_park": True,
    }
    return Pool(residents=residents, parked=parked, queued=queued, **{**numbers, **kwargs})


def waiting(name: str, pending: int, **kwargs: Any) -> Seq:
    """A parked one: none of its cells is in the cache."""
    return Seq(name, 0, pending, decoding=False, **kwargs)


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
    head, small = waiting("head", 300), waiting("small", 10)
    p = plan(pool([Seq("a", 250)], parked=[head, small]))
    assert p.resume == []
    p = plan(pool([Seq("a", 60)], parked=[head, small]))
    assert p.resume == [head, small]


def test_who_returns_leaves_room_to_grow_so_that_nobody_is_parked_again_at_once() -> None:
    a = Seq("a", 200)
    assert return_margin(pool([a])) == 64
    assert plan(pool([a], parked=[waiting("head", 248)])).resume == []  # 200 + 1 + 248 + 64 > 512
    assert plan(pool([a], parked=[waiting("head", 247)])).resume != []


def test_a_newcomer_leaves_a_small_margin() -> None:
    a = Seq("a", 200)
    assert join_margin(pool([a])) == 8
    assert plan(pool([a], queued=[prompt("new", 304)])).admit == []  # 200 + 1 + 304 + 8 > 512
    assert plan(pool([a], queued=[prompt("new", 303)])).admit != []


def test_the_margin_is_waived_when_nobody_is_resident() -> None:
    head = waiting("head", 512)
    assert plan(pool([], parked=[head])).resume == [head]
    new = prompt("new", 512)
    assert plan(pool([], queued=[new])).admit == [new]


def test_nobody_returns_in_a_step_that_parks_under_pressure() -> None:
    assert plan(pool([Seq("a", 256), Seq("b", 256)], parked=[waiting("head", 4)])).resume == []


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
    p = plan(pool([Seq("a", 300)], parked=[waiting("head", 400)], queued=[new]))
    assert (p.admit, p.park_queued) == ([], [new])


def test_a_prompt_waits_in_the_queue_without_a_word_while_there_are_as_many_chats_as_slots() -> None:
    parked = [waiting("p", 400), waiting("q", 400)]
    new = [prompt("new", 5), prompt("newer", 5)]
    assert plan(pool([Seq("a", 300)], parked, new)).park_queued == new[:1]
    assert plan(pool([Seq("a", 300), Seq("b", 5)], parked, new)).park_queued == []
    assert plan(pool([Seq("a", 300)], parked, new, leaving=[Seq("b", 5)])).park_queued == []
    assert plan(pool([Seq("a", 300)], parked, new, can_park=False)).park_queued == []


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
    residents, parked = [Seq("a", 256), Seq("b", 256)], [waiting("p", 9)]
    plan(pool(residents, parked))
    assert [s.name for s in residents] == ["a", "b"]
    assert [s.name for s in parked] == ["p"]


# --- who leaves and who moves in ------------------------------------------------------------------


def test_cells_of_one_that_leaves_are_room_for_the_steps_tokens() -> None:
    a, b, leaving = Seq("a", 300), Seq("b", 112), Seq("leaving", 100)
    p = plan(pool([a, b], leaving=[leaving]))
    assert (p.park, p.compute) == ([], [(a, 1), (b, 1)])


def test_cells_and_slot_of_one_that_leaves_are_no_room_for_a_newcomer() -> None:
    new = prompt("new", 100)
    assert plan(pool([], queued=[new], leaving=[Seq("leaving", 413)])).admit == []
    assert plan(pool([], queued=[new], leaving=[Seq("leaving", 412)])).admit == [new]
    assert plan(pool([], queued=[new], leaving=[Seq("leaving", 1)], n_slots=1)).admit == []


def test_one_that_moves_in_computes_nothing_and_its_cells_are_spoken_for() -> None:
    a, b, coming = Seq("a", 200), Seq("b", 100), Seq("coming", 10, 200, decoding=False, moving=True)
    p = plan(pool([a, b, coming]))
    assert (p.park, p.compute) == ([], [(a, 1), (b, 1)])
    coming.pending += 1  # now 200 + 100 + 211 leave one cell for two
    assert plan(pool([a, b, coming])).park == [(b, "pressure")]


def test_one_that_moves_in_is_a_victim_only_when_there_is_no_other() -> None:
    a, b, coming = Seq("a", 300), Seq("b", 100), Seq("coming", 10, 20, decoding=False, moving=True)
    assert victim([a, b, coming]) is b
    assert victim([a, coming]) is coming


def test_one_that_returns_computes_nothing_in_the_step_that_brings_it_in() -> None:
    a, head = Seq("a", 10), waiting("head", 20)
    p = plan(pool([a], parked=[head]))
    assert (p.resume, p.compute) == ([head], [(a, 1)])


def test_nobody_is_parked_when_that_is_switched_off_but_the_victim_is_named() -> None:
    a, b = Seq("a", 300, park_due=True), Seq("b", 212, held=True)
    assert plan(pool([a, b], can_park=False)).park == [(b, "pressure")]


# --- by hand --------------------------------------------------------------------------------------


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


# --- the line -------------------------------------------------------------------------------------


def test_parked_and_queued_wait_in_one_line_by_the_time_since_when_they_wait() -> None:
    parked, early, late = (
        waiting("parked", 9, since=5.0),
        prompt("early", 9, since=4.0),
        prompt("late", 9, since=6.0),
    )
    everyone = pool([], [parked], [early, late], n_slots=2)
    p = plan(everyone)
    assert (p.resume, p.admit) == ([parked], [early])


def test_a_level_of_priority_is_worth_so_many_seconds_of_waiting() -> None:
    seconds = Policy().level_s
    normal, high = prompt("normal", 9, since=0.0), prompt("high", 9, since=seconds - 1, priority=-1)
    assert sorted([normal, high], key=line_key) == [high, normal]
    high.since = seconds + 1
    assert sorted([normal, high], key=line_key) == [normal, high]


def test_no_priority_is_so_low_that_its_turn_never_comes() -> None:
    assert line_key(prompt("lowest", 9, priority=10**9)) <= 10 * Policy().level_s


def test_one_that_can_never_fit_does_not_block_the_line() -> None:
    new = prompt("new", 9)
    assert plan(pool([], [waiting("giant", 513)], [new])).admit == [new]


# --- rotation -------------------------------------------------------------------------------------


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


# --- priorities -----------------------------------------------------------------------------------


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


def test_under_pressure_the_lowest_priority_goes_even_if_it_has_the_most_cells() -> None:
    low, a, b = Seq("low", 300, priority=1), Seq("a", 120), Seq("b", 92)
    assert victim([low, a, b]) is low
    assert victim([a, b]) is b


def test_prompts_that_keep_nobodys_next_token_waiting_take_as_much_as_a_lone_one() -> None:
    a, b = prompt("a", 300), prompt("b", 300)
    assert plan(pool([a, b], n_cells=1024)).compute == [(a, 64), (b, 64)]
    c = Seq("c", 10)
    assert plan(pool([a, b, c], n_cells=1024)).compute == [(c, 1), (a, 20), (b, 20)]
