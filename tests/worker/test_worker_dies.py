"""A dead worker is a park: another one goes on from the same token, with the same text."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from inference.broker import control, log
from inference.broker.connect import async_client, sync_client
from inference.broker.control import Command
from inference.broker.keys import CONTROL, JOBS, event_log
from inference.engine.llama import Model
from inference.messages import Accepted, Failed, Finished, Preempted, SamplingParams, Token
from tests.engine import tiny

from .mortal import POISON
from .play import GREEDY, Clients, WorkerProcess, sampled

pytestmark = pytest.mark.model

KNIGHT, FOX, KING = [2000, 2001, 2002, 2003], [3000, 3001, 3002], [*range(5000, 5040)]
N = 100

Start = Callable[..., WorkerProcess]


@pytest.fixture(scope="module")
def model_file(tmp_path_factory: pytest.TempPathFactory, model: Model) -> str:
    path = tmp_path_factory.mktemp("mortal") / "tiny.gguf"
    tiny.write(path, Path(model.path))
    return str(path)


@pytest.fixture
def start(model_file: str) -> Iterator[Start]:
    """start("a", stops_with=1) -> a worker that is already loading its model."""
    sync_client().flushall()
    with ExitStack() as ends:

        def start(name: str, stops_with: int = 0) -> WorkerProcess:
            worker = WorkerProcess(name, "--model", model_file)
            worker.start(stops_with=stops_with)
            ends.callback(worker.close)
            return worker

        yield start


async def text_alone(prompt: list[int], n: int, sampling: SamplingParams = GREEDY) -> str:
    """What an undisturbed worker writes. In exact mode it is the same whoever else runs."""
    async with Clients() as clients:
        (client,) = await clients.ask(prompt, n=n, sampling=sampling)
        await client.end()
        assert client.parks == []
        return client.text


async def test_killed_in_every_state_it_goes_on_from_the_same_token(start: Start) -> None:
    worker = start("a", stops_with=3)
    async with Clients() as clients:
        (held,) = await clients.ask(FOX, n=N, sampling=sampled(7))
        await held.until(Token, 5)
        command = Command("park", held.id, worker="a", reply="the-reply")
        await asyncio.to_thread(control.ask_sync, command)
        await held.until(Preempted)
        (greedy,) = await clients.ask(KNIGHT, n=N)
        siblings = await clients.ask(FOX, KING, n=N, sampling=sampled(7))
        for client in (greedy, *siblings):
            await client.until(Token, 3)
        (queued,) = await clients.ask(KING, n=9)
        await queued.until(Accepted)
        worker.kill()
        worker.start()
        everyone = [greedy, *siblings, queued, held]
        ends = [await client.end() for client in everyone]
        parks = [*3 * [["worker", "resumed"]], [], ["hand", "resumed"]]
        assert [client.parks for client in everyone] == parks
        prompts = [KNIGHT, FOX, KING, KING, FOX]
        for end, client, prompt in zip(ends, everyone, prompts, strict=True):
            assert isinstance(end, Finished)
            assert end.prompt_tokens == len(prompt)
            assert end.completion_tokens == len([e for e in client.events if isinstance(e, Token)])
            assert end.parks == len(client.parks) // 2
        await no_job_is_left()
        assert greedy.text == await text_alone(KNIGHT, N)
        assert siblings[0].text == held.text == await text_alone(FOX, N, sampled(7))
        assert siblings[1].text == await text_alone(KING, N, sampled(7))
        assert queued.text == await text_alone(KING, 9)


async def no_job_is_left() -> None:
    while await async_client().xlen(JOBS):  # noqa: ASYNC110 - another process's state
        await asyncio.sleep(0.01)


async def test_a_random_seed_stays_the_same(start: Start) -> None:
    worker = start("a", stops_with=1)
    async with Clients() as clients:
        (client,) = await clients.ask(FOX, n=N, sampling=sampled(-1))
        await client.until(Token, 3)
        worker.kill()
        worker.start()
        await client.end()
        (accepted,) = [event for event in client.events if isinstance(event, Accepted)]
        assert client.text == await text_alone(FOX, N, sampled(accepted.seed))


async def test_another_worker_goes_on_and_the_old_one_can_say_no_more(start: Start) -> None:
    """It was stopped for long, and believes that it still runs what it ran."""
    one = start("a", stops_with=1)
    async with Clients() as clients:
        (client,) = await clients.ask(KNIGHT, n=N)
        await client.until(Token, 3)
        one.send(signal.SIGSTOP)
        two = start("b")
        await one.silence(two)
        await client.until(Preempted)
        one.send(signal.SIGCONT)
        assert await one.ended() == 1
        await client.end()
        assert client.text == await text_alone(KNIGHT, N)
        assert client.parks == ["worker", "resumed"]
        numbers = [number for number, _ in await log.read(client.id)]
        assert numbers == list(range(1, len(client.events) + 1))


async def test_a_worker_that_is_told_to_stop_hands_over_and_takes_nothing_new(start: Start) -> None:
    one = start("a", stops_with=1)
    async with Clients() as clients:
        (client,) = await clients.ask(KNIGHT, n=N)
        await client.until(Token, 3)
        two = start("b")
        await two.token()
        one.send(signal.SIGTERM)
        assert await one.ended() == 0
        (later,) = await clients.ask(FOX, n=3)
        await client.end()
        await later.end()
        assert client.text == await text_alone(KNIGHT, N)
        assert client.parks == ["worker", "resumed"]


async def test_where_it_was_the_only_one_the_jobs_wait_for_its_successor(start: Start) -> None:
    one = start("a", stops_with=1)
    async with Clients() as clients:
        (client,) = await clients.ask(KNIGHT, n=N)
        await client.until(Token, 3)
        one.send(signal.SIGTERM)
        assert await one.ended() == 0
        (later,) = await clients.ask(FOX, n=3)
        start("b")
        await client.end()
        await later.end()
        assert client.text == await text_alone(KNIGHT, N)
        assert later.parks == []


async def test_what_was_cancelled_while_no_worker_lived_ends_as_cancelled(start: Start) -> None:
    worker = start("a", stops_with=1)
    async with Clients() as clients:
        (client,) = await clients.ask(KNIGHT, n=200)
        await client.until(Token, 3)
        worker.kill()
        (unseen,) = await clients.ask(FOX, n=200)
        await control.cancel(client.id)
        await control.cancel(unseen.id)
        worker.start()
        for one in (client, unseen):
            end = await one.end()
            assert isinstance(end, Finished)
            assert end.stop_type == "cancelled"


@asynccontextmanager
async def kept(worker: WorkerProcess):
    keeper = asyncio.create_task(worker.keep())
    try:
        yield
    finally:
        keeper.cancel()


async def test_a_job_that_kills_its_worker_twice_fails_and_the_others_live(start: Start) -> None:
    worker = start("a")
    async with kept(worker), Clients() as clients:
        (greedy,) = await clients.ask(KNIGHT, n=N)
        (random,) = await clients.ask(FOX, n=N, sampling=sampled(7))
        (poison,) = await clients.ask([POISON, 5], n=N)
        end = await poison.end()
        assert isinstance(end, Failed)
        assert end.status == 500
        assert "twice" in end.message
        for client in (greedy, random):
            assert isinstance(await client.end(), Finished)
        assert worker.deaths == 2
        assert greedy.text == await text_alone(KNIGHT, N)
        assert random.text == await text_alone(FOX, N, sampled(7))


async def test_of_siblings_only_the_deadly_one_fails(start: Start) -> None:
    worker = start("a")
    async with kept(worker), Clients() as clients:
        one, poison, other = await clients.ask(KNIGHT, [POISON, 5], KNIGHT, n=N)
        assert isinstance(await poison.end(), Failed)
        for client in (one, other):
            assert isinstance(await client.end(), Finished)
            assert client.text == await text_alone(KNIGHT, N)
        await no_job_is_left()


async def test_rubbish_in_redis_ends_no_worker_and_fails_only_what_it_belongs_to(start: Start) -> None:
    worker = start("a", stops_with=2)
    async with Clients() as clients:
        (one,) = await clients.ask(KNIGHT, n=N)
        (other,) = await clients.ask(FOX, n=N)
        for client in (one, other):
            await client.until(Token, 3)
        worker.kill()
        for stream in (JOBS, CONTROL):
            rubbish: list[dict[Any, Any]] = [
                {"job": b"\xff"},
                {b"\xff": b"\xff"},
                {"kind": "park", "id": "", "slot": "x"},
            ]
            for fields in rubbish:
                await async_client().xadd(stream, fields)
        await async_client().xadd(event_log(one.id), {"e": b"\xff", "t": "now"})
        worker.start()
        async with kept(worker):
            end = await one.end()
            assert isinstance(end, Failed)
            assert "part of the answer was lost" in end.message
            assert isinstance(await other.end(), Finished)
            assert other.text == await text_alone(FOX, N)
            await no_job_is_left()
            assert worker.deaths == 0


async def test_when_redis_is_killed_and_has_lost_its_data_no_character_is_lost(
    start: Start, redis_server
) -> None:
    start("a")
    async with Clients() as clients:
        (client,) = await clients.ask(KNIGHT, n=120)
        await client.until(Token, 3)
        redis_server.kill()
        redis_server.start()
        assert isinstance(await client.end(), Finished)
        assert client.text == await text_alone(KNIGHT, 120)
        assert [event for _, event in await log.read(client.id)] == client.events
