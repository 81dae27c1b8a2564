"""Parks and resumes are copied piece by piece between steps. Here each step's share is one piece."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inference.engine import engine as engine_module
from inference.engine.engine import Engine
from inference.engine.llama import Context
from inference.engine.parking import PIECE
from inference.engine.sequence import Sequence, State
from inference.messages import Finished, Preempted, Resumed, Token

from .conftest import FISHER, KNIGHT, Run

Make = Callable[..., Engine]
LONG = list(range(1000, 1450))  # four pieces with what it says


@pytest.fixture(autouse=True)
def one_piece_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "COPY_SHARE", 0)


def two(engine: Engine, prompt: str | list[int] = LONG) -> tuple[Run, Sequence, Sequence]:
    """A long chat and a neighbour, both decoding."""
    run = Run(engine)
    chat, neighbour = run.add(prompt, 200), run.add(KNIGHT, 300)
    step_until(run, lambda: chat.decoding and neighbour.decoding)
    return run, chat, neighbour


def step_until(run: Run, done: Callable[[], bool]) -> None:
    for _ in range(1000):
        if done():
            return
        run.step()
    raise AssertionError("it does not come to that")


def park(run: Run, chat: Sequence) -> None:
    assert run.engine.hold(chat.id) == ""
    step_until(run, lambda: chat.state is State.PARKED)


def bring_back(run: Run, chat: Sequence) -> None:
    assert run.engine.release(chat.id) == ""
    step_until(run, lambda: chat.state is State.RESIDENT)


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


@pytest.mark.parametrize("nth", [1, 2, 4])
def test_a_failed_restore_beside_others_leaves_it_parked_and_loses_nothing(
    make_tiny_engine: Make, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    run = Run(make_tiny_engine(2048))
    seq, neighbour = run.add(LONG, 30), run.add(LONG[:10], 400)
    while not (seq.decoding and neighbour.decoding):
        run.step()
    load, calls = Context.load_piece, []

    def fails_once(self: Context, seq_id: int, data: object) -> bool:
        calls.append(seq_id)
        return len(calls) != nth and load(self, seq_id, data)  # type: ignore[arg-type]

    monkeypatch.setattr(Context, "load_piece", fails_once)
    run.engine.hold(seq.id)
    run.engine.release(seq.id)
    run.finish()
    assert len(calls) == 4 + nth  # those before the failure came in again
    assert run.kinds(seq) == ["started", "preempted", "resumed", "finished"]
    assert (seq.generated, neighbour.generated) == (30, 400)
    assert run.engine.counters.recomputed_tokens_total == 0
    assert sum(run.engine.counters.copy_out_seconds.counts) == 1
    assert run.engine.counters.parks == run.engine.counters.resumes == {("hand", "swap"): 1}
    assert run.engine.parked_bytes == 0


def alone(make: Make, preempt_every: int) -> tuple[Run, list[int]]:
    """A run of one long chat to its end, and the chat's tokens."""
    run = Run(make(1024, preempt_every=preempt_every))
    return run, run.finish_one(LONG, 30).tokens


@pytest.mark.parametrize("nth", [1, 2, 4])
def test_what_cannot_be_restored_though_nobody_else_is_there_is_recomputed(
    make_tiny_engine: Make, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    _, reference = alone(make_tiny_engine, 0)
    load, calls = Context.load_piece, []

    def fails_from_the_nth(self: Context, seq_id: int, data: object) -> bool:
        calls.append(seq_id)
        return len(calls) < nth and load(self, seq_id, data)  # type: ignore[arg-type]

    monkeypatch.setattr(Context, "load_piece", fails_from_the_nth)
    run, parked = alone(make_tiny_engine, 20)
    assert parked == reference
    assert len(calls) == nth
    kinds = [e.kind for e in run.events["0"] if not isinstance(e, Token)]
    assert kinds == ["started", "preempted", "resumed", "finished"]
    assert run.engine.counters.recomputed_tokens_total == len(LONG) + 19
    assert run.engine.parked_bytes == 0


@pytest.mark.parametrize("nth", [1, 3])
def test_what_cannot_be_saved_is_recomputed(
    make_tiny_engine: Make, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    _, reference = alone(make_tiny_engine, 0)
    save, calls = Context.save_piece, []

    def fails_once(self: Context, *args: int) -> object:
        calls.append(args)
        return None if len(calls) == nth else save(self, *args)

    monkeypatch.setattr(Context, "save_piece", fails_once)
    run, parked = alone(make_tiny_engine, 20)
    assert parked == reference
    assert run.engine.counters.recomputed_tokens_total == len(LONG) + 19
    assert run.engine.parked_bytes == run.engine.kept_bytes == 0
    methods = [e.method for e in run.events["0"] if isinstance(e, Preempted | Resumed)]
    assert methods == ["swap", "recompute"]
    assert run.engine.counters.parks == run.engine.counters.resumes == {("forced", "recompute"): 1}
