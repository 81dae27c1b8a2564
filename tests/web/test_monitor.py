"""A monitor that does not read holds little memory, and is told what is true when it reads again."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from dashboard import consumers, live
from inference.broker import occupancy
from inference.serve.connection import MOST_UNSENT
from tests.broker.play import count_readings, picture
from tests.web.conftest import WebServer
from tests.web.websocket import handshake

pytestmark = pytest.mark.django_db(transaction=True)
SIZE = 100_000  # characters of a picture


def cookie() -> str:
    client = Client()
    client.force_login(User.objects.create_user("ada", is_staff=True))
    name = settings.SESSION_COOKIE_NAME
    return f"{name}={client.cookies[name].value}"


def dial(server: WebServer, cookie: str) -> socket.socket:
    client = server.connect()
    client.sendall(handshake(server.port, "/ws/monitor/", cookie=cookie))
    return client


async def until(is_so: Callable[[], Any]) -> None:
    while not await is_so():
        pass


async def test_a_monitor_that_is_not_read_is_bounded_and_then_told_what_is_true(
    server: WebServer, monkeypatch
):
    monkeypatch.setattr(consumers, "AT_LEAST_S", 0.0)
    monkeypatch.setattr(consumers, "AT_MOST_S", 0.0)  # it is told without a pause
    monkeypatch.setattr(live, "SHARED_S", 0.0)
    made = count_readings(monkeypatch)
    await occupancy.put(picture("w1", padding="x" * SIZE))
    with dial(server, await database_sync_to_async(cookie)()) as client:
        await until(lambda: behind(server))
        before = len(made)
        for _ in range(200):
            await occupancy.put(picture("w1", padding="x" * SIZE))
            assert await server.unsent() <= MOST_UNSENT + 2 * SIZE
        assert len(made) == before  # and nothing is made for it
        await occupancy.put(picture("last"))
        seen = b""
        while b'"worker":"last"' not in seen:
            part = await asyncio.to_thread(client.recv, 1 << 20)
            assert part, "the server hung up"
            seen = seen[-100:] + part


async def behind(server: WebServer) -> bool:
    return any(connection.is_behind for connection in await server.call(server.server.open_connections))
