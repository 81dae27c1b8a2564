from __future__ import annotations

from typing import Any

import pytest
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import AnonymousUser, User

from dashboard.consumers import Monitor
from inference.broker import occupancy

pytestmark = pytest.mark.django_db(transaction=True)  # consumers close old connections between messages


def dial(user) -> WebsocketCommunicator:
    communicator = WebsocketCommunicator(Monitor.as_asgi(), "/ws/monitor/")
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
    data = await socket.receive_json_from(timeout=10)
    assert data["workers"] == [{"worker": "w1", "pool": {"cells": 512, "used": 10}}]
    assert data["now"] > 0
    await socket.disconnect()


async def test_news_is_sent_on_and_what_came_together_is_sent_once():
    socket = dial(STAFF)
    await socket.connect()
    assert (await socket.receive_json_from(timeout=10))["workers"] == []
    for used in range(20):
        await occupancy.put({"worker": "w1", "pool": {"cells": 512, "used": used}})
    received: list[Any] = []
    while not received or received[-1][0]["pool"]["used"] != 19:
        received.append((await socket.receive_json_from(timeout=10))["workers"])
    assert len(received) < 5
    await socket.disconnect()


async def test_a_worker_that_has_gone_disappears_without_news():
    await occupancy.put({"worker": "w1"})
    socket = dial(STAFF)
    await socket.connect()
    assert (await socket.receive_json_from(timeout=10))["workers"]
    while (await socket.receive_json_from(timeout=10))["workers"]:
        pass
    await socket.disconnect()


async def test_without_redis_the_socket_closes_so_that_the_browser_says_it_is_not_live(redis_server):
    socket = dial(STAFF)
    await socket.connect()
    await socket.receive_json_from(timeout=10)
    redis_server.kill()
    assert (await socket.receive_output(timeout=10))["type"] == "websocket.close"
