"""A worker that is drained takes no new jobs, finishes what it has, and takes jobs again when told to."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from inference.broker import control, occupancy
from inference.broker.connect import async_client
from inference.broker.control import Command
from inference.messages import Accepted, Finished, Token

from .play import Clients, WorkerProcess

pytestmark = pytest.mark.model


@pytest.fixture
def workers() -> Iterator[list[WorkerProcess]]:
    with ExitStack() as opened:
        found = [WorkerProcess("w1"), WorkerProcess("w2")]
        for worker in found:
            opened.enter_context(closing(worker))
        yield found


async def tell(kind: str, worker: str) -> Any:
    """Give the command when the worker is there; its answer."""
    while not await picture(worker):  # noqa: ASYNC110 - another process's state
        await asyncio.sleep(0.02)
    command = Command(kind, "", worker=worker, reply=uuid.uuid4().hex)
    while (answer := await asyncio.to_thread(control.ask_sync, command)) is None:
        pass
    return answer


async def picture(worker: str) -> Any:
    return next((shown for shown in await occupancy.get_all() if shown["worker"] == worker), None)


async def state_is(worker: str, state: str) -> Any:
    while (shown := await picture(worker))["state"] != state:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.02)
    return shown


async def test_what_comes_to_a_worker_that_drains_is_run_by_another_and_what_it_had_goes_on(workers, model):
    await async_client().flushdb()
    first, second = workers
    prompt = model.tokenize("Once upon a time there was a knight", add_special=True, parse_special=False)
    first.start()
    async with Clients() as clients:
        [old] = await clients.ask(prompt, n=150)
        await old.until(Token)
        assert await tell("drain", "w1") == {"worker": "w1", "is_draining": True}
        await state_is("w1", "draining")
        [early] = await clients.ask(prompt, n=8)
        second.start()
        late = [(await clients.ask(prompt, n=8))[0] for _ in range(4)]
        for client in (early, *late, old):
            assert isinstance(await client.end(), Finished)
        assert not old.parks
        # The pictures come a moment after the events.
        while (await picture("w2"))["counters"]["tokens_predicted_total"] < 5 * 8:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.02)
        while any(slot["state"] != "idle" for slot in (await state_is("w1", "draining"))["slots"]):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_alone_it_lets_new_jobs_wait_until_it_takes_them_again(workers, model):
    await async_client().flushdb()
    workers[0].start()
    prompt = model.tokenize("The quick brown fox", add_special=True, parse_special=False)
    await tell("drain", "w1")
    async with Clients() as clients:
        waiting = [(await clients.ask(prompt, n=4))[0] for _ in range(3)]
        assert await tell("undrain", "w1") == {"worker": "w1", "is_draining": False}
        for client in waiting:
            await client.until(Accepted)
            assert isinstance(await client.end(), Finished)
        await state_is("w1", "ready")
