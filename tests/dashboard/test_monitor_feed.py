from __future__ import annotations

import asyncio
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import AnonymousUser, User

from dashboard.consumers import Monitor
from inference.broker import occupancy

pytestmark = pytest.mark.django_db(transaction=True)  # Channels looks after the connection at each message
PATIENCE = 60.0  # s


class Socket(WebsocketCommunicator):  # type: ignore[misc]
    """Waits longer than a busy machine takes."""

    async def receive_output(self, *_: float) -> Any:
        return await super().receive_output(PATIENCE)

    async def wait(self, *_: float) -> None:
        await super().wait(PATIENCE)


def dial(user) -> Socket:
    communicator = Socket(Monitor.as_asgi(), "/ws/monitor/")
    communicator.scope["user"] = user
    return communicator


@pytest.fixture(autouse=True)
def _staff(transactional_db) -> None:
    """The row of the one who looks: it is looked at again and again."""
    STAFF.save(force_insert=True)


STAFF = User(pk=1, username="root", is_staff=True)


@pytest.mark.parametrize(
    "user", [AnonymousUser(), User(username="ada"), User(is_staff=True, is_active=False)]
)
async def test_all_but_staff_are_turned_away_with_a_code_the_browser_can_see(user):
    socket = dial(user)
    assert await socket.connect() == (True, None)
    closed = await socket.receive_output()
    assert (closed["type"], closed["code"]) == ("websocket.close", 4403)


async def test_staff_get_the_picture_at_once():
    await occupancy.put({"worker": "w1", "pool": {"cells": 512, "used": 10}})
    socket = dial(STAFF)
    await socket.connect()
    data = await socket.receive_json_from()
    assert data["workers"] == [{"worker": "w1", "pool": {"cells": 512, "used": 10}}]
    assert data["now"] > 0
    await socket.disconnect()


async def test_news_is_sent_on_and_what_came_together_is_sent_once(monkeypatch):
    socket = dial(STAFF)
    await socket.connect()
    assert (await socket.receive_json_from())["workers"] == []
    looking, look = asyncio.Event(), asyncio.Event()
    get_all = occupancy.get_all

    async def get_all_later() -> Any:
        looking.set()
        await look.wait()
        return await get_all()

    monkeypatch.setattr(occupancy, "get_all", get_all_later)
    await looking.wait()
    for used in range(20):
        await occupancy.put({"worker": "w1", "pool": {"cells": 512, "used": used}})
    look.set()
    assert (await socket.receive_json_from())["workers"] == [
        {"worker": "w1", "pool": {"cells": 512, "used": 19}}
    ]
    await socket.disconnect()


async def test_a_worker_that_has_gone_disappears_without_news():
    await occupancy.put({"worker": "w1"})
    socket = dial(STAFF)
    await socket.connect()
    assert (await socket.receive_json_from())["workers"]
    while (await socket.receive_json_from())["workers"]:
        pass
    await socket.disconnect()


async def test_without_redis_the_socket_closes_so_that_the_browser_says_it_is_not_live(redis_server):
    socket = dial(STAFF)
    await socket.connect()
    await socket.receive_json_from()
    redis_server.kill()
    assert (await socket.receive_output())["type"] == "websocket.close"
