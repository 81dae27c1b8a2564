"""What readers are told of where their generations are, from the workers' pictures."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.places import places
from inference.broker import occupancy
from tests.broker.play import picture


def slot(state: str, generation: str = "a", **more: Any) -> dict[str, Any]:
    usual: dict[str, Any] = picture()["slots"][0]
    return usual | {"state": state, "generation": generation, **more}


def parked(generation: str = "a", **more: Any) -> dict[str, Any]:
    usual = {"generation": generation, "held": False, "cause": "pressure", "since": 5.0, "turn": 1}
    return usual | more


async def state(**more: Any) -> dict[str, Any] | None:
    await occupancy.put(picture(**more))
    return (await places()).get("a")


async def test_who_is_in_the_queue_has_a_place_in_it():
    queue = [{"generation": "b", "turn": 2}, {"generation": "a", "turn": 3}]
    assert await state(queue=queue) == {"state": "waiting", "turn": 3}


async def test_who_is_next_is_told_how_much_room_is_missing_and_not_each_token_of_it():
    head = {"generation": "a", "needs": 253, "free": 72, "slots": 1}
    queue = [{"generation": "a", "turn": 1}]
    assert await state(queue=queue, head=head) == {"state": "waiting", "turn": 1, "needs": 190}


async def test_for_who_waits_for_a_slot_alone_no_room_is_missing():
    head = {"generation": "a", "needs": 40, "free": 72, "slots": 0}
    told = {"state": "paused", "cause": "pressure", "since": 5.0, "turn": 1, "needs": 0}
    assert await state(parked=[parked()], head=head) == told


async def test_a_prompt_that_is_read_tells_how_far_it_is():
    reading = slot("prefill", cells=30, n_prompt_tokens=60)
    assert await state(slots=[reading]) == {"state": "reading", "done": 30, "total": 60}


async def test_what_is_read_once_more_has_the_answer_in_it():
    reading = slot("prefill", cells=30, n_prompt_tokens=60, n_decoded=20)
    assert await state(slots=[reading]) == {"state": "reading", "done": 30, "total": 80}


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({"turn": 2, "cause": "rotation"}, {"state": "paused", "cause": "rotation", "turn": 2}),
        ({"turn": None, "cause": "hand", "held": True}, {"state": "held", "cause": "hand"}),
        ({"turn": 1, "cause": "hand"}, {"state": "paused", "cause": "hand", "turn": 1}),
        ({"turn": 1, "cause": "worker"}, {"state": "moving", "cause": "worker", "turn": 1}),
    ],
)
async def test_a_park_tells_why_and_since_when(found, told):
    assert await state(parked=[parked(**found)], slots=[slot("parking")]) == {"since": 5.0, **told}


@pytest.mark.parametrize(("slot_state", "told"), [("decode", "writing"), ("resuming", "resuming")])
async def test_in_a_slot_a_word_is_enough(slot_state, told):
    assert await state(slots=[slot(slot_state)]) == {"state": told}


async def test_who_is_nowhere_is_told_nothing():
    assert await state() is None
