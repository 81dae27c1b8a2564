"""A client that reads slowly, or not at all, holds little memory and slows nobody."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any

from inference.serve.connection import MOST_UNSENT
from inference.stream import MOST_AT_ONCE
from tests.api.play import Worker, working
from tests.broker.play import numbered, told
from tests.web.conftest import WebServer

BODY = json.dumps({"prompt": "hi", "stream": True}).encode()
TEXT = "x" * 2000
MANY = 10_000  # tokens: far more than the kernel's buffers take
MOST = MOST_UNSENT + 2 * MOST_AT_ONCE


async def play(worker: Worker, job: Any, n: int) -> None:
    """A generation of `n` tokens, all at once."""
    first, started, *tokens = told(*[TEXT] * n)
    events = numbered(job.id, [first, started, *tokens])
    for at in range(0, len(events), 100):
        await worker._publisher.publish(events[at : at + 100])


def read_all(client: socket.socket) -> bytes:
    """Up to the end of a chunked answer."""
    data = bytearray()
    while not data.endswith(b"\r\n0\r\n\r\n"):
        part = client.recv(1 << 20)
        assert part, "the server hung up"
        data += part
    return bytes(data)


async def until(is_so: Callable[[], Any]) -> None:
    while not await is_so():
        pass


async def test_what_a_client_does_not_read_is_bounded_and_neighbours_go_on(server: WebServer):
    async with working() as worker:
        with server.post("/completion", BODY) as idle:
            job = await worker.takes()
            await play(worker, job, MANY)
            await until(lambda: far_behind(server))
            with server.post("/completion", BODY) as neighbour:
                await play(worker, await worker.takes(), 100)
                answer = await asyncio.to_thread(read_all, neighbour)
            assert answer.count(b'"stop":false') == 100
            assert await server.unsent() <= MOST
            # It is only slow: what it gets in the end is everything.
            answer = await asyncio.to_thread(read_all, idle)
            assert answer.count(b'"stop":false') == MANY
            assert answer.count(b'"stop":true') == 1
            assert await server.unsent() == 0


async def far_behind(server: WebServer) -> bool:
    return any(connection.is_behind for connection in await server.call(server.server.open_connections))


async def test_who_has_read_nothing_for_a_long_time_is_cut_off_and_what_he_asked_for_is_cancelled(
    server: WebServer, monkeypatch
):
    monkeypatch.setattr(server.server, "_send_timeout", 0.0)  # the next look but one is late
    async with working() as worker:
        with server.post("/completion", BODY) as idle:
            job = await worker.takes()
            events = numbered(job.id, told(*[TEXT] * MANY))[:-1]  # it goes on
            for at in range(0, len(events), 100):
                await worker._publisher.publish(events[at : at + 100])
            await until(lambda: far_behind(server))
            for _ in range(2):
                await server.call(server.server._cut_off_idle_readers)
            await worker.is_told_to_cancel(job)
            assert idle.fileno() >= 0


async def test_who_reads_slowly_is_not_cut_off(server: WebServer, monkeypatch):
    monkeypatch.setattr(server.server, "_send_timeout", 0.0)
    async with working() as worker:
        with server.post("/completion", BODY) as slow:
            await play(worker, await worker.takes(), MANY)
            await until(lambda: far_behind(server))
            data = bytearray()
            while not data.endswith(b"\r\n0\r\n\r\n"):
                await server.call(server.server._cut_off_idle_readers)
                for _ in range(20):
                    part = await asyncio.to_thread(slow.recv, 1 << 20)
                    assert part, "cut off"
                    data += part
                    if data.endswith(b"\r\n0\r\n\r\n"):
                        break
    assert data.count(b'"stop":true') == 1


async def test_a_websocket_that_is_not_read_is_bounded_too(server: WebServer):
    sent = 0

    async def flood(scope: Any, receive: Any, send: Any) -> None:
        nonlocal sent
        await send({"type": "websocket.accept"})
        while True:
            await send({"type": "websocket.send", "text": TEXT})
            sent += 1
            await asyncio.sleep(0)

    server.apps["/flood"] = flood
    with server.connect() as client:
        client.sendall(
            b"GET /flood HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        await until(lambda: far_behind(server))
        before = sent
        for _ in range(100):
            assert await server.unsent() <= MOST
        assert sent == before
