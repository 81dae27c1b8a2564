"""Parks and unparks by hand, on a real engine: whom a slot means, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from inference.broker.control import Command
from inference.engine.engine import Engine
from inference.engine.llama import Context, Model
from inference.engine.sequence import State
from inference.messages import Answer, Event, Finished, Preempted, Prioritised, Resumed, Started, Token
from inference.worker.by_hand import carry_out
from inference.worker.decode_thread import DecodeThread
from inference.worker.snapshot import Snapshots
from tests.engine.conftest import BAKER, FISHER, FOX, KNIGHT, Run


@pytest.fixture(scope="module")
def context(model: Model) -> Iterator[Context]:
    context = Context(model, n_ctx=512, n_seq_max=2, n_batch=256)
    yield context
    context.close()


@pytest.fixture
def engine(context: Context) -> Iterator[Engine]:
    engine = Engine(context, n_cells=512, n_slots=2, n_ctx_seq=512, context_shift=True)
    yield engine
    for seq in list(engine.everyone()):
        engine.cancel(seq.id)


class Desk(Run):
    """A run beside which an operator sits."""

    def tell(self, kind: str, slot: int | str = "", id: str = "", priority: int = 0) -> dict[str, Any]:
        """Give a command; its answer's data. What happened is kept with what happens in steps."""
        command = Command(kind, id, "", "w1", str(slot), "the reply", str(priority))
        *events, (reply, answer) = carry_out(self.engine, command)
        for seq_id, event in events:
            self.events[seq_id].append(event)
        assert reply == "the reply"
        assert isinstance(answer, Answer)
        return answer.data

    def steps(self, n: int) -> None:
        for _ in range(n):
            self.step()

    def state(self) -> list[tuple[str, State, bool]]:
        return [(s.id, s.state, s.held) for s in self.engine.everyone()]


def test_a_held_chat_waits_until_it_is_released_and_goes_on_with_the_same_text(engine: Engine) -> None:
    def tokens(with_hold: bool) -> list[int]:
        desk = Desk(engine)
        seq = desk.add(BAKER, 30)
        desk.steps(8)
        if with_hold:
            assert desk.tell("park", 0) == {"id_slot": 0, "id": "0", "worker": "w1", "is_held": True}
            assert desk.of(seq, Preempted)[0].cause == "hand"
            before = len(seq.tokens)
            desk.steps(5)
            assert (len(seq.tokens), seq.state) == (before, State.PARKED)
            assert desk.tell("unpark", 0) == {"id_slot": 0, "id": "0", "worker": "w1", "is_held": False}
        desk.finish()
        if with_hold:
            assert desk.kinds(seq) == ["started", "preempted", "released", "resumed", "finished"]
        return seq.tokens

    assert tokens(True) == tokens(False)


def test_who_is_held_keeps_nobody_else_from_running_or_entering(engine: Engine) -> None:
    desk = Desk(engine)
    held = desk.add(KNIGHT, 30)
    desk.steps(3)
    desk.tell("park", 0)
    others = [desk.add(prompt, 10) for prompt in (FOX, FISHER, BAKER)]
    desk.finish()
    assert all(len(desk.of(other, Finished)) == 1 for other in others)
    assert not any(desk.of(other, Preempted) for other in others)
    assert held.state is State.PARKED


def test_with_nothing_but_held_chats_there_is_nothing_to_do(engine: Engine) -> None:
    desk = Desk(engine)
    desk.add(KNIGHT, 30)
    desk.steps(3)
    desk.tell("park", 0)
    desk.steps(1)  # it is copied out
    assert engine.idle
    desk.tell("unpark", 0)
    assert not engine.idle


def test_unpark_finds_the_held_chat_though_another_runs_in_its_slot(engine: Engine) -> None:
    desk = Desk(engine)
    held = desk.add(KNIGHT, 40)
    desk.steps(3)
    desk.tell("park", 0)
    others = [desk.add(FOX, 300), desk.add(FISHER, 300)]  # one for each slot
    desk.steps(3)
    assert {s.slot for s in engine.residents} == {0, 1}
    assert desk.tell("unpark", 0)["id"] == held.id
    assert not held.held
    assert all(s.state is State.RESIDENT for s in others)


def test_of_several_held_in_a_slot_the_one_held_longest_is_released_unless_one_is_named(
    context: Context,
) -> None:
    engine = Engine(context, n_cells=512, n_slots=1, n_ctx_seq=512)
    desk = Desk(engine)
    for prompt in (KNIGHT, FOX, FISHER):
        desk.add(prompt, 30)
        desk.steps(2)
        assert desk.tell("park", 0)["id_slot"] == 0
    assert desk.tell("unpark", 0, id="2")["id"] == "2"
    assert desk.tell("unpark", 0)["id"] == "0"
    assert [s.held for s in engine.everyone()] == [False, True, False]
    desk.tell("unpark", 0)
    desk.finish()


def refused(desk: Desk, status: int, words: str, *command: Any, **more: Any) -> bool:
    """Whether a command is refused so, with nothing changed."""
    before = desk.state()
    data = desk.tell(*command, **more)
    assert data["status"] == status, data
    assert words in data["error"], data
    return desk.state() == before


def test_an_idle_slot_and_one_that_is_not_there_are_told_apart(engine: Engine) -> None:
    desk = Desk(engine)
    for kind in ("park", "unpark"):
        assert refused(desk, 409, "Slot 1 is idle", kind, 1)
        assert refused(desk, 400, "no slot 2: this worker's are 0 to 1", kind, 2)


def test_a_chat_that_is_parked_already_cannot_be_parked(engine: Engine) -> None:
    desk = Desk(engine)
    desk.add(KNIGHT, 30)
    desk.steps(3)
    desk.tell("park", 0)
    assert refused(desk, 409, "is parked already", "park", 0)


def test_a_chat_that_pressure_has_parked_can_be_neither_parked_nor_released(engine: Engine) -> None:
    desk = Desk(engine)
    desk.add(" ".join([KNIGHT] * 30), 100)
    desk.steps(8)
    waiting = desk.add(" ".join([FOX] * 30), 10)
    desk.steps(1)
    assert waiting.state is State.PARKED
    assert refused(desk, 409, "is parked already", "park", id=waiting.id)
    assert refused(desk, 409, "is not held", "unpark", id=waiting.id)


def test_a_chat_that_runs_cannot_be_released(engine: Engine) -> None:
    desk = Desk(engine)
    desk.add(KNIGHT, 30)
    desk.steps(3)
    assert refused(desk, 409, "is not held", "unpark", 0)


def test_a_chat_that_has_ended_or_belongs_elsewhere_is_said_to(engine: Engine) -> None:
    desk = Desk(engine)
    desk.add(KNIGHT, 30)
    desk.steps(3)
    assert refused(desk, 404, "it has ended", "park", id="f" * 32)
    assert refused(desk, 409, "belongs to slot 0, not to 1", "park", 1, id="0")


def test_a_held_chat_can_be_cancelled(engine: Engine) -> None:
    desk = Desk(engine)
    desk.add(KNIGHT, 30)
    desk.steps(3)
    desk.tell("park", 0)
    assert engine.cancel("0")
    assert engine.parked_bytes == 0
    assert refused(desk, 409, "idle", "unpark", 0)


def test_a_chat_can_be_cancelled_wherever_it_is(engine: Engine) -> None:
    desk = Desk(engine)
    running, held, queued = desk.add(KNIGHT, 300), desk.add(FOX, 300), desk.add(FISHER, 300)
    desk.steps(5)
    desk.tell("park", id=held.id)
    desk.steps(2)
    late = desk.add(BAKER, 300)
    for seq in (running, held, queued, late):
        written = seq.generated
        answer = desk.tell("cancel", id=seq.id)
        assert answer == {"id_slot": seq.slot, "id": seq.id, "worker": "w1", "n_decoded": written}
        assert desk.of(seq, Finished)[0].stop_type == "cancelled"
        assert refused(desk, 404, "it has ended", "cancel", id=seq.id)
    assert (engine.used_cells, engine.parked_bytes, list(engine.everyone())) == (0, 0, [])


def test_who_is_prioritised_in_the_queue_comes_in_before_who_came_earlier(engine: Engine) -> None:
    desk = Desk(engine)
    for prompt in (KNIGHT, FOX):
        desk.add(prompt, 300)
    desk.steps(3)
    first, second = desk.add(FISHER, 10), desk.add(BAKER, 10)
    assert engine.head is not None
    assert engine.head.sequence is first
    done = {"id_slot": -1, "id": second.id, "worker": "w1", "priority": -1, "was": 0}
    assert desk.tell("prioritise", id=second.id, priority=-1) == done
    assert engine.head.sequence is second
    assert [s["priority"] for s in Snapshots(engine).take()["queue"]] == [-1, 0]
    assert desk.of(second, Prioritised) == [Prioritised(-1)]
    engine.cancel("0")
    desk.steps(1)
    assert second in engine.residents
    assert first in engine.queued


def test_a_resident_that_is_prioritised_keeps_its_place_while_a_lower_one_is_parked(engine: Engine) -> None:
    desk = Desk(engine)
    small, large = desk.add(FOX, 300), desk.add(" ".join([KNIGHT] * 30), 300)
    desk.steps(8)
    assert desk.tell("prioritise", id=small.id, priority=-1)["was"] == 0
    while engine.used_cells < 512 - 2:
        desk.step()
    desk.steps(3)
    assert desk.of(large, Preempted)[0].cause == "pressure"
    assert not desk.of(small, Preempted)


def test_the_line_of_the_parked_follows_a_change_of_priority(engine: Engine) -> None:
    desk = Desk(engine)
    held, running = desk.add(KNIGHT, 300), desk.add(FOX, 300)
    desk.steps(3)
    desk.tell("park", id=held.id)
    desk.tell("park", id=running.id)
    desk.steps(2)
    assert [s.id for s in engine.parked] == [held.id, running.id]
    desk.tell("prioritise", id=running.id, priority=-5)
    assert [s.id for s in engine.parked] == [running.id, held.id]
    desk.tell("unpark", id=running.id)
    desk.steps(2)
    assert running in engine.residents


def test_the_picture_tells_who_is_held_and_what_goes_first(engine: Engine) -> None:
    desk = Desk(engine)
    held, running = desk.add(KNIGHT, 30), desk.add(FOX, 300)
    held.priority, running.priority = 1, -1
    desk.steps(3)
    desk.tell("park", 0)
    desk.add(FISHER, 30).priority = 5
    picture = Snapshots(engine).take()
    assert [(s["held"], s["priority"]) for s in picture["slots"]] == [(True, 1), (False, -1)]
    assert [(s["held"], s["priority"]) for s in picture["parked"]] == [(True, 1)]
    assert [s["priority"] for s in picture["queue"]] == [5]


async def test_the_decode_thread_answers_in_order_and_sleeps_while_all_are_held(engine: Engine) -> None:
    seq = Desk(engine).add(KNIGHT, -1)  # it does not end while it is spoken of
    thread = DecodeThread(engine, Snapshots(engine), asyncio.get_running_loop())

    async def kinds_until(kind: type[Event]) -> list[str]:
        events: list[Event] = []
        while not any(isinstance(event, kind) for event in events):
            events += [event for _, event in await thread.events()]
        return [event.kind for event in events if not isinstance(event, Token)]

    thread.start()
    await kinds_until(Started)
    thread.obey(Command("park", seq.id, worker="w1", reply="r1"))
    assert await kinds_until(Answer) == ["preempted", "answer"]
    while not engine.idle:  # it is copied out
        await thread.has_snapshot.wait()
        thread.take_snapshot()
    thread.obey(Command("unpark", seq.id, worker="w1", reply="r2"))
    assert await kinds_until(Resumed) == ["released", "answer", "resumed"]
    thread.stop()
    await thread.ended.wait()
    assert thread.error is None
    assert seq.state is State.RESIDENT
