from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from channels.layers import get_channel_layer
from channels.testing import WebsocketCommunicator
from django.contrib.auth.models import AnonymousUser, User

from dashboard import consumers, live
from dashboard.consumers import ChatFeed, Monitor
from inference.broker import occupancy, people, series
from inference.broker.connect import async_client
from tests.broker.play import count_readings, picture

pytestmark = pytest.mark.django_db(transaction=True)  # Channels looks after the connection at each message
PATIENCE = 60.0  # s


class Socket(WebsocketCommunicator):  # type: ignore[misc]
    """Waits longer than a busy machine takes."""

    async def receive_output(self, *_: float) -> Any:
        return await super().receive_output(PATIENCE)

    async def wait(self, *_: float) -> None:
        await super().wait(PATIENCE)


def dial(user, consumer: Any = Monitor) -> Socket:
    communicator = Socket(consumer.as_asgi(), "/ws/monitor/")
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


@pytest.mark.parametrize("rubbish", [{"type": "unheard.of"}, {}, [], 7])
async def test_a_group_message_that_cannot_be_read_ends_a_feed_and_all_beside_it(rubbish: Any):
    before = asyncio.all_tasks()
    socket = dial(STAFF, ChatFeed)
    await socket.connect()
    await socket.receive_json_from()
    assert "_tell_while_it_may" in repr(asyncio.all_tasks() - before)
    await tell(people.group(STAFF.pk), rubbish)
    await asyncio.wait([socket.future])
    assert isinstance(socket.future.exception(), TypeError | ValueError | KeyError)
    while "_tell_while_it_may" in repr(asyncio.all_tasks() - before):  # noqa: ASYNC110 - any that is left
        await asyncio.sleep(0)


async def tell(group: str, message: Any) -> None:
    layer: Any = get_channel_layer()
    await async_client().publish(f"{layer.prefix}__group__{group}", layer.serialize(message))


async def test_one_ear_hears_for_all_monitors_and_only_while_there_are_some(monkeypatch):
    monkeypatch.setattr(consumers, "AT_MOST_S", 2 * PATIENCE)  # they are told of what is heard alone
    channel = f"{get_channel_layer().prefix}__group__{occupancy.GROUP}"
    listening = [len(get_channel_layer()._get_layer().groups.get(channel, ()))]
    sockets = [dial(STAFF) for _ in range(3)]
    for socket in sockets:
        await socket.connect()
        await socket.receive_json_from()
    listening.append(len(get_channel_layer()._get_layer().groups[channel]))
    await tell(occupancy.GROUP, 7)  # whatever is said, there is news
    for socket in sockets:
        await socket.receive_json_from()
        await socket.disconnect()
    while groups := get_channel_layer()._get_layer().groups.get(channel):
        assert len(groups) == 1
        await asyncio.sleep(0)
    assert listening == [0, 1]


async def past_of(socket: Socket) -> Any:
    """The next message about the past."""
    while "past" not in (message := await socket.receive_json_from()):
        pass
    return message["past"]


async def test_a_span_that_is_asked_for_is_sent_whole_and_then_what_is_new():
    change = [1.0, 0, "decode", "ada", "a"]
    await occupancy.put({"worker": "w1"})
    await series.write("w1", series.Sample(1.0, 30, 50, 100, 0, 0, 0.0, 0, 0.0), [change])
    socket = dial(STAFF)
    await socket.connect()
    await socket.send_json_to({"span": "24h"})
    past = await past_of(socket)
    assert (past["span"], past["step"], past["length"], past["whole"]) == ("24h", 300, 288, True)
    assert past["points"][-1][1:3] == [30.0, 0.5]
    assert past["lanes"] == {"w1": [change]}
    await socket.send_json_to({"span": "5m"})
    assert (await past_of(socket))["whole"]
    await occupancy.put({"worker": "w1"})
    later = await past_of(socket)
    assert not later["whole"]
    assert len(later["points"]) <= 2
    assert later["lanes"] == {}
    await socket.disconnect()


@pytest.mark.parametrize("words", [{"span": "1y"}, {"span": ["5m"]}, [], "5m", {}])
async def test_a_span_that_there_is_not_changes_nothing(words):
    socket = dial(STAFF)
    await socket.connect()
    await socket.send_json_to(words)
    for _ in range(2):
        assert "workers" in await socket.receive_json_from()
    await socket.disconnect()


async def test_monitors_of_the_same_moment_share_one_reading(monkeypatch):
    readings = count_readings(monkeypatch)
    monkeypatch.setattr(live, "SHARED_S", 60.0)
    sockets = [dial(STAFF) for _ in range(20)]
    for socket in sockets:
        await socket.connect()
        assert (await socket.receive_json_from())["workers"] == []
    assert len(readings) == 1
    for socket in sockets:
        await socket.disconnect()


async def test_monitors_share_what_is_new_of_the_past_whenever_they_came(monkeypatch):
    loop = asyncio.get_running_loop()
    clock = [loop.time()]
    monkeypatch.setattr(loop, "time", lambda: clock[0])
    readings: list[Any] = []
    changes = series.changes

    async def counted(after: Any) -> Any:
        readings.append(after)
        return await changes(after)

    monkeypatch.setattr(series, "changes", counted)
    await occupancy.put({"worker": "w1"})
    pasts = [live.Past() for _ in range(10)]

    async def look(past: live.Past) -> Any:
        return json.loads(await past.news())["past"]

    for i, past in enumerate(pasts):
        past.choose("1h")
        await series.write("w1", series.Sample(*(0,) * 9), [[i, 0, "idle", "", ""]])
        clock[0] += 0.3
        assert (await look(past))["whole"]
    for _ in range(2):  # at the first look each takes what the others have
        await series.write("w1", series.Sample(*(0,) * 9), [[99, 0, "idle", "", ""]])
        clock[0] += live.LANES_EVERY_S
        readings.clear()
        found = [await look(past) for past in pasts]
        assert not any(past["whole"] for past in found)
    assert all(past == found[0] for past in found)
    assert len(readings) == 1


async def test_the_template_and_the_folder_of_a_model_are_not_sent_each_time():
    await occupancy.put(picture())
    socket = dial(STAFF)
    await socket.connect()
    [worker] = (await socket.receive_json_from())["workers"]
    assert worker["model"]["alias"] == "tiny"
    assert not {"chat_template", "path"} & worker["model"].keys()
    await socket.disconnect()
