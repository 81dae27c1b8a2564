"""Who comes in, in which order, and what must be left free for that."""

from __future__ import annotations

from inference.engine.scheduler import Policy, join_margin, line_key, plan, return_margin

from .pools import Seq, pool, prompt, waiting


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


def test_cells_and_slot_of_one_that_leaves_are_no_room_for_a_newcomer() -> None:
    new = prompt("new", 100)
    assert plan(pool([], queued=[new], leaving=[Seq("leaving", 413)])).admit == []
    assert plan(pool([], queued=[new], leaving=[Seq("leaving", 412)])).admit == [new]
    assert plan(pool([], queued=[new], leaving=[Seq("leaving", 1)], n_slots=1)).admit == []


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
