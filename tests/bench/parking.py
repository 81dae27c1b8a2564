"""What parking costs, in the engine alone: each figure is a ratio of two runs that alternate."""

from __future__ import annotations

import statistics
import time
import unittest.mock
from collections.abc import Callable, Iterable

from inference.engine import scheduler
from inference.engine.engine import Engine
from inference.engine.llama import Context, Model
from inference.engine.sampling import Sampler
from inference.engine.sequence import Sequence
from inference.engine.text import TextAssembler
from inference.messages import Preempted, SamplingParams, Token

N_CELLS, N_SLOTS = 8192, 5
LONG = 2000  # tokens of the chat that is parked
GREEDY = SamplingParams(temperature=0, ignore_eos=True)


def report(model_path: str, n_threads: int, rounds: int) -> None:
    """Print the ratios' medians and ranges."""
    model = Model(model_path)
    shared = _context(model, n_threads)
    _run(_engine(shared), [_chat(shared, 0, 100, 20)])  # warm
    _show("neighbour's gap in a park of 2000 tokens / its step", (_gap(shared) for _ in range(rounds)))
    _show(
        "makespan of 4 chats, pool for one / for all",
        _ratios(rounds, lambda: _makespan(shared, 640), lambda: _makespan(shared, N_CELLS)),
    )
    _show(
        "tokens/s, planner on / off, nobody parked",
        (_planned(shared) for _ in range(rounds)),
    )
    exact = _context(model, n_threads, exact=True)
    _show(
        "tokens/s of 4 chats, exact / not",
        _ratios(rounds, lambda: _rate(exact), lambda: _rate(shared)),
    )


def _context(model: Model, n_threads: int, exact: bool = False) -> Context:
    n_ctx = 2048 if exact else N_CELLS
    return Context(model, n_ctx=n_ctx, n_seq_max=N_SLOTS, n_batch=512, n_threads=n_threads, exact=exact)


def _engine(ctx: Context, n_cells: int = 0) -> Engine:
    n_cells = n_cells or ctx.n_ctx
    return Engine(ctx, n_cells=n_cells, n_slots=N_SLOTS, n_ctx_seq=n_cells)


def _chat(ctx: Context, n: int, n_prompt: int, n_tokens: int) -> Sequence:
    prompt = [1000 + (97 * i + n) % 20_000 for i in range(n_prompt)]
    return Sequence(str(n), prompt, Sampler(ctx.model, GREEDY), TextAssembler(()), n_tokens)


def _run(engine: Engine, chats: list[Sequence]) -> float:
    """Seconds until all are over."""
    started = time.perf_counter()
    for chat in chats:
        engine.add(chat)
    while not engine.idle:
        engine.step()
    return time.perf_counter() - started


def _gap(ctx: Context) -> float:
    """A neighbour's worst step while a long chat is copied out, in the same steps without copying."""
    engine = _engine(ctx)
    long, neighbour = _chat(ctx, 1, LONG, 1000), _chat(ctx, 2, 20, 1000)
    for chat in (long, neighbour):
        engine.add(chat)
    while not (long.decoding and neighbour.decoding):
        engine.step()
    for _ in range(20):  # so that the engine knows how long a step takes
        engine.step()
    engine.hold(long.id)
    with unittest.mock.patch.object(engine._transfers, "copy"):
        ordinary = statistics.median(_timed(engine) for _ in range(20))
    worst = 0.0
    while engine.leaving:
        worst = max(worst, _timed(engine))
    for chat in (long, neighbour):
        engine.cancel(chat.id)
    return worst / ordinary


def _timed(engine: Engine) -> float:
    started = time.perf_counter()
    engine.step()
    return time.perf_counter() - started


def _makespan(ctx: Context, n_cells: int) -> float:
    return _run(_engine(ctx, n_cells), [_chat(ctx, n, 400, 100) for n in range(4)])


def _decoding(ctx: Context, n_tokens: int) -> Engine:
    """Four chats, past their prompts."""
    engine = _engine(ctx)
    for n in range(4):
        engine.add(_chat(ctx, n, 20, n_tokens))
    while not all(s.decoding for s in engine.everyone()):
        engine.step()
    return engine


def _planned(ctx: Context) -> float:
    """Steps per second with the planner over those with a plan that was ready: each other step of one run,
    so that both are as old and meet the same machine."""
    engine = _decoding(ctx, 100)
    ready: scheduler.Plan[Sequence] = scheduler.Plan(compute=[(s, 1) for s in engine.residents])
    planned, unplanned = [], []
    while len(engine.residents) == 4:
        planned.append(_timed(engine))
        with unittest.mock.patch.object(scheduler, "plan", return_value=ready):
            unplanned.append(_timed(engine))
    engine.drain()
    return statistics.median(unplanned) / statistics.median(planned)


def _rate(ctx: Context) -> float:
    """Tokens per second of four decoding chats."""
    engine = _decoding(ctx, 100)
    started, n_tokens = time.perf_counter(), 0
    while not engine.idle:
        events = [event for _, event in engine.step()]
        assert not any(isinstance(event, Preempted) for event in events)
        n_tokens += sum(isinstance(event, Token) for event in events)
    return n_tokens / (time.perf_counter() - started)


def _ratios(rounds: int, one: Callable[[], float], other: Callable[[], float]) -> Iterable[float]:
    for i in range(rounds):
        if i % 2:  # each first as often as the other
            below = other()
            yield one() / below
        else:
            above = one()
            yield above / other()


def _show(name: str, ratios: Iterable[float]) -> None:
    found = list(ratios)
    print(f"{name:54s} {statistics.median(found):.3f} ({min(found):.3f}..{max(found):.3f})", flush=True)
