"""A chat that is held by hand stays parked until it is released. Here each step copies one piece."""

from __future__ import annotations

import pytest

from inference.engine.sequence import State
from inference.messages import Preempted, Resumed

from .conftest import KNIGHT
from .moves import LONG, Make, bring_back, park, step_until, two

pytestmark = pytest.mark.usefixtures("one_piece_a_step")


def test_hold_and_release_say_why_they_cannot(make_tiny_engine: Make) -> None:
    engine = make_tiny_engine(1024)
    run, chat, neighbour = two(engine)
    queued = run.add(KNIGHT, 5)
    assert engine.hold(queued.id) == "has no slot yet"
    assert engine.hold("nobody") == engine.release("nobody") == "is over"
    assert engine.release(chat.id) == "is not held"
    engine.cancel(queued.id)
    assert engine.hold(queued.id) == engine.release(queued.id) == "is over"

    chat.park_due = True  # parked, but not by hand
    for state in (State.LEAVING, State.PARKED, State.RETURNING):
        step_until(run, lambda state=state: chat.state is state)  # type: ignore[misc]
        assert engine.hold(chat.id) == "is parked already"
        assert engine.release(chat.id) == "is not held"
    step_until(run, lambda: chat.decoding)

    assert engine.hold(chat.id) == ""
    assert chat.state is State.LEAVING
    assert engine.hold(chat.id) == "is parked already"
    step_until(run, lambda: chat.state is State.PARKED)
    assert engine.hold(chat.id) == "is parked already"
    bring_back(run, chat)
    assert engine.release(chat.id) == "is not held"
    assert len(run.of(chat, Preempted)) == len(run.of(chat, Resumed)) == 2
    assert neighbour.generated > 0


def test_where_nothing_is_ever_parked_nothing_can_be_held(make_tiny_engine: Make) -> None:
    run, chat, _ = two(make_tiny_engine(1024, preempt_ram=0))
    assert run.engine.swap == "off"
    assert run.engine.hold(chat.id) == "cannot be parked: parking is switched off (--preempt-ram 0)"
    assert not chat.held


def test_a_held_one_does_not_return_and_blocks_nobody(make_tiny_engine: Make) -> None:
    engine = make_tiny_engine(1024)
    run, chat, neighbour = two(engine)
    park(run, chat)
    assert run.of(chat, Preempted)[0].cause == "hand"
    said = chat.generated
    neighbour.park_due = True
    newcomer = run.add(LONG, 30)
    run.finish()
    assert (neighbour.generated, newcomer.generated) == (300, 30)
    assert (chat.state, chat.generated) == (State.PARKED, said)
    assert engine.idle
    assert engine.step() == []
    engine.release(chat.id)
    assert not engine.idle
    run.finish()
    assert chat.generated == 200
