"""Parks and resumes are copied piece by piece between steps. Here each step's share is one piece."""

from __future__ import annotations

import pytest

from inference.engine.engine import Engine
from inference.engine.parking import PIECE
from inference.engine.sequence import Sequence, State
from inference.messages import Finished, Preempted

from .conftest import FISHER, KNIGHT, Run
from .moves import LONG, Make, bring_back, park, step_until, two

pytestmark = pytest.mark.usefixtures("one_piece_a_step")


def check_cells(engine: Engine, chat: Sequence, neighbour: Sequence) -> None:
    assert engine.ctx.cells(neighbour.slot) == neighbour.cells
    if chat.state is not State.PARKED:
        assert engine.ctx.cells(chat.slot) == chat.cells
    assert engine.used_cells == chat.cells + neighbour.cells


def goes_and_comes(engine: Engine, prompt: str | list[int]) -> None:
    run, chat, neighbour = two(engine, prompt)
    cells = chat.cells
    pieces = -(-cells // PIECE)
    assert pieces > 2
    engine.hold(chat.id)
    for left in range(pieces - 1, -1, -1):
        said = neighbour.generated
        run.step()
        assert neighbour.generated == said + 1
        assert chat.cells == left * PIECE
        assert chat.state is (State.LEAVING if left else State.PARKED)
        check_cells(engine, chat, neighbour)
    engine.release(chat.id)
    for there in range(1, pieces + 1):
        said = neighbour.generated
        run.step()
        assert neighbour.generated == said + 1
        assert chat.cells == min(there * PIECE, cells)
        assert chat.state is (State.RETURNING if there < pieces else State.RESIDENT)
        check_cells(engine, chat, neighbour)
    assert run.kinds(chat) == ["started", "preempted", "resumed"]
    assert engine.parked_bytes == 0


def test_one_piece_moves_in_each_step_and_the_neighbour_gets_a_token(make_tiny_engine: Make) -> None:
    goes_and_comes(make_tiny_engine(1024), LONG)


def test_so_it_is_on_the_real_model(make_engine: Make) -> None:
    goes_and_comes(make_engine(1024), " ".join([FISHER] * 24))


def test_without_a_neighbour_nobody_waits_and_it_goes_through(make_tiny_engine: Make) -> None:
    engine = make_tiny_engine(1024)
    run = Run(engine)
    chat = run.add(LONG, 20)
    step_until(run, lambda: chat.decoding)
    engine.hold(chat.id)
    run.step()
    assert chat.state is State.PARKED


def test_a_later_park_copies_only_what_is_new(make_tiny_engine: Make) -> None:
    engine = make_tiny_engine(1024)
    run, chat, _ = two(engine)
    park(run, chat)
    whole = engine.copied_bytes[0]
    assert whole == engine.parked_bytes
    bring_back(run, chat)
    assert engine.copied_bytes == (whole, whole)
    assert engine.kept_bytes > whole / 2
    run.step()
    park(run, chat)
    assert chat.copy is not None
    new = chat.copy.pieces[chat.swapped // PIECE].nbytes
    assert engine.copied_bytes[0] == whole + new
    assert engine.parked_bytes == chat.copy.nbytes > whole


def test_what_residents_keep_goes_first_when_a_park_needs_the_ram(make_tiny_engine: Make) -> None:
    ram = 200_000  # more than either takes, less than one and what is kept of the other
    engine = make_tiny_engine(1024, preempt_ram=ram)
    run = Run(engine)
    first, second = run.add(LONG[:300], 200), run.add(LONG[:280], 200)
    step_until(run, lambda: first.decoding and second.decoding)
    park(run, first)
    bring_back(run, first)
    kept = engine.kept_bytes
    park(run, second)
    assert run.of(second, Preempted)[0].method == "swap"
    assert kept > 0
    assert engine.kept_bytes == 0
    assert ram - kept < engine.parked_bytes <= ram
    bring_back(run, second)
    park(run, first)
    assert run.of(first, Preempted)[1].method == "swap"


class Steps:
    """A clock on which each step takes a second."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def finish(self, run: Run) -> None:
        while not run.engine.idle:
            self.now += 1.0
            run.step()


@pytest.mark.parametrize("ram", [-1, 1000], ids=["swap", "recompute"])
def test_time_and_tokens_are_what_they_would_be_without_parks(make_tiny_engine: Make, ram: int) -> None:
    def life(**kwargs: int) -> tuple[Run, Sequence]:
        clock = Steps()
        engine = make_tiny_engine(1024, lone_chunk=128, clock=clock, **kwargs)
        run = Run(engine)
        chat = run.add(LONG[:300], 21)
        clock.finish(run)
        assert engine.counters.prompt_tokens_total == 300
        assert engine.counters.tokens_predicted_total == 21
        end = run.of(chat, Finished)[0]
        lived = end.parked_s + (end.timings.prompt_ms + end.timings.predicted_ms) / 1e3
        assert lived == clock.now - 1  # it came a step before the first
        return run, chat

    plain, reference = life()
    run, chat = life(preempt_every=10, preempt_ram=ram)
    assert chat.tokens == reference.tokens
    was, now = (r.of(s, Finished)[0].timings for r, s in ((plain, reference), (run, chat)))
    assert (now.prompt_n, now.predicted_n, now.prompt_ms) == (was.prompt_n, was.predicted_n, was.prompt_ms)
    # The step in which its copy is back computes nothing of it yet.
    assert now.predicted_ms == was.predicted_ms + (2000 if ram < 0 else 0)
    assert [e.method for e in run.of(chat, Preempted)] == ["swap" if ram < 0 else "recompute"] * 2
    recomputed = 0 if ram < 0 else 309 + 319
    assert run.engine.counters.recomputed_tokens_total == recomputed
    # It waits a step for its slot; recomputing takes three more, of which the last gives its next token.
    assert run.of(chat, Finished)[0].parked_s == 2 * (1 if ram < 0 else 4)


def test_a_recompute_on_the_real_model_gives_the_same_greedy_text(make_engine: Make) -> None:
    def text(**kwargs: int) -> str:
        run = Run(make_engine(1024, **kwargs))
        return run.text(run.finish_one(KNIGHT, 24))

    assert text(preempt_every=8, preempt_ram=1000) == text()


@pytest.mark.parametrize("state", [State.LEAVING, State.RETURNING])
def test_a_cancel_in_the_midst_of_a_transfer_frees_everything(make_tiny_engine: Make, state: State) -> None:
    engine = make_tiny_engine(1024)
    run, chat, neighbour = two(engine)
    engine.hold(chat.id)
    if state is State.RETURNING:
        step_until(run, lambda: chat.state is State.PARKED)
        engine.release(chat.id)
    run.step()
    assert chat.state is state
    assert 0 < chat.cells < len(chat.tokens)
    assert engine.cancel(chat.id)
    assert chat.state is State.OVER
    assert engine.ctx.cells(chat.slot) == 0
    assert engine.used_cells == neighbour.cells
    assert engine.parked_bytes == engine.kept_bytes == 0
    run.step()
    assert run.of(chat, Finished)[0].stop_type == "cancelled"
    assert [s.id for s in engine.everyone()] == [neighbour.id]
    newcomer = run.add(KNIGHT, 5)
    run.step()
    assert newcomer.slot == chat.slot
