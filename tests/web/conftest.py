from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from inference.broker.connect import sync_client
from inference.serve.web import Server
from project.asgi import application

KEY = "web-tests"


class WebServer:
    """The web process's server in a thread: a reactor runs once in a process, so that all tests share it."""

    def __init__(self) -> None:
        from twisted.internet import reactor

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.apps: dict[str, Any] = {}  # a test's own, by path
        self.server = Server(
            self._application,
            endpoints=[f"tcp:port={self.port}:interface=127.0.0.1"],
            signal_handlers=False,
            verbosity=0,
            drain_s=0.0,
            send_timeout=0.0,
        )
        self.reactor: Any = reactor
        self._thread = threading.Thread(target=self.server.run, daemon=True)
        self._thread.start()
        for _ in range(1000):
            try:
                self.connect().close()
                return
            except ConnectionRefusedError:
                threading.Event().wait(0.01)
        raise AssertionError("the server does not listen")

    async def _application(self, scope: Any, receive: Any, send: Any) -> None:
        await self.apps.get(scope["path"], application)(scope, receive, send)

    async def call(self, function: Any) -> Any:
        """Its result, called in the server's thread."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()
        self.reactor.callFromThread(lambda: loop.call_soon_threadsafe(done.set_result, function()))
        return await done

    async def unsent(self) -> int:
        """Bytes that wait for the client that is farthest behind."""
        connections = await self.call(self.server.open_connections)
        return max((connection.unsent for connection in connections), default=0)

    def connect(self) -> socket.socket:
        """A client whose kernel takes hardly anything that it does not read."""
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", self.port))
        return client

    def post(self, path: str, body: bytes, headers: str = "") -> socket.socket:
        client = self.connect()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: {KEY}\r\n"
            f"Content-Length: {len(body)}\r\n{headers}\r\n"
        )
        client.sendall(head.encode() + body)
        return client


@pytest.fixture(scope="session")
def running_server() -> WebServer:
    return WebServer()


@pytest.fixture
def server(running_server: WebServer, settings: Any) -> Iterator[WebServer]:
    sync_client().flushall()
    settings.BERTH = replace(settings.BERTH, api_keys=(KEY,))
    yield running_server
    running_server.apps.clear()
