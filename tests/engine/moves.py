"""A long chat beside a neighbour, step by step to where a test wants it."""

from __future__ import annotations

from collections.abc import Callable

from inference.engine.engine import Engine
from inference.engine.sequence import Sequence, State

from .conftest import KNIGHT, Run

Make = Callable[..., Engine]
LONG = list(range(1000, 1450))  # four pieces with what it says


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
