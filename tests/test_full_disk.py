"""A Redis whose disk is full: what runs goes on, and nothing of it is lost."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import redis
import redis.asyncio

from inference.broker import connect, log
from inference.broker.hub import hub
from inference.broker.publisher import Publisher
from inference.serve import embedded_redis, full_disk, model_files

from .broker.play import new_id, numbered, soon, told


async def test_what_redis_cannot_write_for_now_is_written_later_and_nobody_is_told_before():
    id, publisher, client = new_id(), Publisher("w1"), connect.async_client()
    publisher.route(id, hub().group)
    events = numbered(id, told("a", "b"))
    async with hub().follow(id, fresh=True) as follower:
        await publisher.publish(events[:2])
        await client.config_set("min-replicas-to-write", 1)  # as with a full disk, every write is refused
        try:
            publishing = asyncio.create_task(publisher.publish(events[2:]))
            heard = [await follower.next(soon()), await follower.next(soon())]
            assert await follower.next(soon(0.2)) is None
            assert not publishing.done()
        finally:
            await client.config_set("min-replicas-to-write", 0)
        await publishing
        while len(heard) < len(events):
            heard.append(await follower.next(soon()))
    assert heard == [(number, event) for _, number, event in events] == await log.read(id)


@asynccontextmanager
async def _embedded(folder) -> AsyncIterator[tuple[asyncio.subprocess.Process, redis.asyncio.Redis]]:
    command, socket = embedded_redis.prepare(folder)
    tied = [sys.executable, str(model_files.TIED), str(os.getpid())]
    # Python ignores the signal of a file that may not grow, and with it its child, to which that is an error.
    process = await asyncio.create_subprocess_exec(
        *tied, *command, stdout=subprocess.DEVNULL, restore_signals=False
    )
    client = redis.asyncio.Redis(unix_socket_path=str(socket))
    try:
        while True:
            try:
                await client.ping()
                break
            except redis.ConnectionError:
                assert process.returncode is None
                await asyncio.sleep(0.01)
        yield process, client
    finally:
        await client.aclose()
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def status(client: redis.asyncio.Redis, name: str) -> Any:
    return (await client.info("persistence"))[name]


async def test_redis_goes_on_in_memory_while_its_disk_is_full_and_writes_it_all_once_there_is_room(tmp_path):
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN
    async with _embedded(tmp_path) as (process, client):
        await client.set("before", "1")
        unlimited = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1, unlimited[1]))
        while await status(client, "aof_last_write_status") == "ok":
            with contextlib.suppress(redis.ResponseError):
                await client.set("during", "2")
        await full_disk.look(client, tmp_path)
        await client.set("during", "3")
        assert not list((tmp_path / "redis").glob("*/*"))  # a Redis that dies now comes back without old data
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, unlimited)
        await full_disk.look(client, tmp_path)
        await client.set("after", "4")
        while await status(client, "aof_rewrite_in_progress"):
            pass
        process.kill()
        await process.wait()
    async with _embedded(tmp_path) as (_, client):
        assert await client.mget("before", "during", "after") == [b"1", b"3", b"4"]
