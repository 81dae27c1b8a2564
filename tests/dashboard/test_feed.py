"""What a person's open page is told of their chats."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction

from dashboard import feed
from dashboard.consumers import ChatFeed
from inference import recorder
from inference.broker import occupancy, people
from inference.models import Generation
from tests.broker.play import picture

from .test_monitor_feed import Socket

pytestmark = pytest.mark.django_db(transaction=True)


def dial(user: User | AnonymousUser, since: str = "") -> Socket:
    socket = Socket(ChatFeed.as_asgi(), f"/ws/chats/?since={since}")
    socket.scope["user"] = user
    return socket


async def connected(user: User, since: str = "") -> tuple[Socket, Any]:
    """With the first that is told."""
    socket = dial(user, since)
    await socket.connect()
    return socket, await socket.receive_json_from()


async def until(socket: Socket, chats: Any) -> Any:
    """What is told with these states, whatever came before."""
    while (news := await socket.receive_json_from())["chats"] != chats:
        pass
    return news


async def test_who_is_not_signed_in_is_turned_away_with_a_code_the_browser_can_see():
    for user in (AnonymousUser(), User(username="ada", is_active=False)):
        socket = dial(user)
        assert await socket.connect() == (True, None)
        closed = await socket.receive_output()
        assert (closed["type"], closed["code"]) == ("websocket.close", 4403)


async def test_the_chats_on_their_way_are_told_with_their_states_at_once_and_as_they_change(generation, ada):
    chat, id = str(generation.message.chat_id), generation.id.hex
    socket, news = await connected(ada)
    assert news["chats"] == {chat: {"generation": id, "state": "waiting"}}
    await occupancy.put(picture(queue=[{"generation": id, "turn": 2}]))
    await until(socket, {chat: {"generation": id, "state": "waiting", "turn": 2}})
    await occupancy.put(picture(slots=[picture()["slots"][0] | {"state": "decode", "generation": id}]))
    await until(socket, {chat: {"generation": id, "state": "writing"}})
    await sync_to_async(Generation.objects.update)(state="finished")
    await occupancy.put(picture())
    await until(socket, {})
    await socket.disconnect()


async def test_a_change_is_told_to_all_pages_of_its_person_and_to_nobody_else(chat, ada, grace):
    pages = [await connected(ada), await connected(ada)]
    other, first = await connected(grace)
    await sync_to_async(feed.changed)(ada, chat)
    for page, _ in pages:
        while not (news := await page.receive_json_from())["changed"]:
            pass
        assert news["changed"] == [chat.pk]
        assert news["since"] > first["since"]
        await page.disconnect()
    await sync_to_async(feed.changed)(grace, 77)
    while not (news := await other.receive_json_from())["changed"]:
        pass
    assert news["changed"] == [77]
    await other.disconnect()


async def test_a_page_that_comes_back_is_told_what_it_has_missed(chat, ada):
    socket, news = await connected(ada)
    await socket.disconnect()
    await sync_to_async(feed.changed)(ada, chat)
    socket, again = await connected(ada, news["since"])
    assert again["changed"] == [chat.pk]
    await socket.disconnect()
    socket, once_more = await connected(ada, again["since"])
    assert once_more["changed"] == []
    await socket.disconnect()


async def test_a_message_that_is_lost_is_made_up_for_by_the_next_look(chat, ada, monkeypatch):
    monkeypatch.setattr(ChatFeed, "chats_changed", lambda self, message: asyncio.sleep(0))
    socket, _ = await connected(ada)
    await sync_to_async(feed.changed)(ada, chat)
    while not (news := await socket.receive_json_from())["changed"]:
        pass
    assert news["changed"] == [chat.pk]
    await socket.disconnect()


@pytest.mark.parametrize("since", ["x", "-1", "9" * 400, "%00", "$", "%2B"])
async def test_a_place_that_is_none_is_the_present(since, chat, ada):
    await sync_to_async(feed.changed)(ada, chat)
    socket, news = await connected(ada, since)
    assert news["changed"] == []
    assert people.is_place(news["since"])
    await socket.disconnect()


async def test_a_page_that_is_told_nothing_new_hears_that_it_is_connected(ada):
    socket, first = await connected(ada)
    again = await socket.receive_json_from()
    assert again["chats"] == first["chats"] == {}
    assert again["now"] > first["now"]
    await socket.disconnect()


async def test_without_redis_it_closes_so_that_the_browser_comes_again(ada, redis_server):
    socket, _ = await connected(ada)
    redis_server.kill()
    assert (await socket.receive_output())["type"] == "websocket.close"


def test_a_change_is_told_when_it_is_committed(chat, ada):
    before = people.last_sync(ada.pk)
    with transaction.atomic():
        feed.changed(ada, chat)
        assert people.last_sync(ada.pk) == before
    assert people.last_sync(ada.pk) != before


def test_without_redis_a_write_goes_on(chat, ada, redis_away):
    feed.changed(ada, chat)
    assert people.last_sync(ada.pk) == ""


def test_the_recorder_tells_when_an_answer_has_ended(generation, ada):
    before = people.last_sync(ada.pk)
    recorder._tell_readers([generation.id.hex])
    assert people.last_sync(ada.pk) != before


async def test_only_so_many_changes_are_kept(ada):
    for chat in range(people.KEEP + 20):
        await sync_to_async(people.changed_sync)(ada.pk, chat)
    _, chats = await people.since(ada.pk, people.NOTHING)
    assert len(chats) == people.KEEP


async def test_who_looks_at_nothing_that_goes_on_reads_no_picture(ada, chat, monkeypatch):
    async def none() -> Any:
        raise AssertionError("a picture was read")

    monkeypatch.setattr(occupancy, "get_all", none)
    page = feed.Feed(ada.pk)
    assert json.loads(await page.news())["chats"] == {}
    assert page.pause_s() == feed.AT_MOST_S
