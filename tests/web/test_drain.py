"""A web process that is told to end takes nothing new, and open streams come to their end for a while."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from inference.broker.control import cancelled
from inference.messages import Job, Token
from tests.api.play import Worker, working
from tests.broker.play import END, told
from tests.conftest import DATA_DIR, TIED
from tests.served import ROOT, free_port
from tests.web.conftest import KEY, WebServer

BODY = json.dumps({"prompt": "hi", "stream": True}).encode()


@contextmanager
def web(drain: float) -> Iterator[Web]:
    port = free_port()
    flags = ["--port", port, "--drain", drain, "--api-key", KEY, "--data-dir", DATA_DIR]
    command = [sys.executable, str(ROOT / "manage.py"), "web", *map(str, flags)]
    process = subprocess.Popen([*TIED, *command], stderr=subprocess.PIPE)
    try:
        yield Web(process, port)
    finally:
        process.kill()
        process.communicate()


class Web:
    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process, self._port = process, port

    def connect(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        while True:
            try:
                connection.connect()
                return connection
            except ConnectionRefusedError:
                assert self.process.poll() is None, "it ended"

    def is_up(self) -> None:
        """Wait until it has answered: only then has it set up its signals."""
        connection = self.connect()
        connection.request("GET", "/health")
        connection.getresponse().read()
        connection.close()

    def refuses(self) -> bool:
        try:
            http.client.HTTPConnection("127.0.0.1", self._port).connect()
        except ConnectionRefusedError:
            return True
        return False

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def post(connection: http.client.HTTPConnection, last: str = "") -> http.client.HTTPResponse:
    connection.request("POST", "/completion", BODY, {"X-Api-Key": KEY, "Last-Event-ID": last})
    return connection.getresponse()


def read_until(reply: http.client.HTTPResponse, text: bytes) -> bytes:
    data = b""
    while text not in data:
        line = reply.readline()
        assert line, data
        data += line
    return data


async def begun(worker: Worker, opened: Web) -> tuple[Job, http.client.HTTPResponse, bytes]:
    """A stream that has shown its first token."""
    connection = await asyncio.to_thread(opened.connect)
    asking = asyncio.create_task(asyncio.to_thread(post, connection))
    job = await worker.takes()
    await worker.says(job, *told("first")[:3])
    reply = await asking
    return job, reply, await asyncio.to_thread(read_until, reply, b"\n\n")


@pytest.mark.usefixtures("server")
async def test_an_open_stream_comes_to_its_end_and_nothing_new_is_taken():
    async with working() as worker:
        with web(drain=60) as opened:
            job, reply, _ = await begun(worker, opened)
            opened.process.send_signal(signal.SIGTERM)
            while not await asyncio.to_thread(opened.refuses):
                pass
            await worker.says(job, Token(2, "second"), END)
            rest = await asyncio.to_thread(reply.read)
            assert await asyncio.to_thread(opened.process.wait, 60) == 0
    assert b"second" in rest
    assert b'"stop":true' in rest


@pytest.mark.usefixtures("server")
async def test_a_load_balancer_and_new_requests_are_turned_away():
    async with working() as worker:
        with web(drain=60) as opened:
            job, reply, _ = await begun(worker, opened)
            health, generate = [await asyncio.to_thread(opened.connect) for _ in range(2)]
            for connection in (health, generate):
                connection.request("GET", "/health")
                (await asyncio.to_thread(connection.getresponse)).read()
            opened.process.send_signal(signal.SIGTERM)
            while not await asyncio.to_thread(opened.refuses):
                pass
            health.request("GET", "/health")
            told_so = await asyncio.to_thread(health.getresponse)
            refused = await asyncio.to_thread(post, generate)
            assert (told_so.status, refused.status) == (503, 503)
            assert b"restarting" in refused.read()
            await worker.says(job, END)
            await asyncio.to_thread(reply.read)


async def test_what_is_cut_off_is_told_so_and_goes_on_at_another_web_process(server: WebServer):
    async with working() as worker:
        with web(drain=0) as opened:
            job, reply, had = await begun(worker, opened)
            assert await asyncio.to_thread(opened.end) == 0
            rest = await asyncio.to_thread(reply.read)  # to its proper end, or this raises IncompleteRead
        error = json.loads(rest.removeprefix(b"data: "))["error"]
        assert (error["code"], "Last-Event-ID" in error["message"]) == (503, True)
        assert not await cancelled()  # nobody has cancelled it
        last = had.partition(b"\n")[0].removeprefix(b"id: ").decode()
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        await worker.says(job, Token(2, "second"), END)
        again = await asyncio.to_thread(post, connection, last)
        answer = await asyncio.to_thread(again.read)
    assert [
        json.loads(line[6:])["content"] for line in answer.split(b"\n") if line.startswith(b"data: ")
    ] == [
        "second",
        "",
    ]


@pytest.mark.usefixtures("server")
async def test_without_anything_open_it_ends_at_once_however_long_it_would_wait():
    async with working():
        with web(drain=3600) as opened:
            await asyncio.to_thread(opened.is_up)
            assert await asyncio.to_thread(opened.end) == 0
