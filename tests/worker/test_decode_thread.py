"""What the decode thread hands to the asyncio thread, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from inference.engine.engine import Engine
from inference.engine.llama import Context, Model
from inference.messages import Accepted, Finished, Token
from inference.worker.decode_thread import DecodeThread
from inference.worker.snapshot import Snapshots
from tests.engine.conftest import KNIGHT, Run

FOR_EVER = 3600.0


@pytest.fixture
def engine(model: Model) -> Iterator[Engine]:
    context = Context(model, n_ctx=256, n_seq_max=2, n_batch=256)
    yield Engine(context, n_cells=256, n_slots=2, n_ctx_seq=256)
    context.close()


async def test_tokens_gather_and_whatever_else_happens_ends_that(engine: Engine) -> None:
    thread = DecodeThread(engine, Snapshots(engine), asyncio.get_running_loop())
    Run(engine).add(KNIGHT, 100)
    thread.start()
    batches = [[event for _, event in await thread.events()]]
    while not isinstance(batches[-1][-1], Finished):
        await thread.gather(FOR_EVER)
        batches += [events] if (events := [event for _, event in thread.take_events()]) else []
    assert len(batches) < 10
    assert sum(type(event) is Token for events in batches for event in events) == 100
    thread.tell("b", Accepted(1, 1, 1))
    await thread.gather(FOR_EVER)
    assert thread.take_events() == [("b", Accepted(1, 1, 1))]
    thread.stop()
    await thread.ended.wait()
