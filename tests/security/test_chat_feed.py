"""The live feed of one's chats is for who is signed in, on our own pages, and tells of nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from dashboard import feed
from inference import revocation
from inference.broker import people
from inference.models import Generation
from project.asgi import application
from tests.broker.play import picture, show
from tests.dashboard.test_monitor_feed import Socket

from .conftest import cookie_of


async def dial(user: User | None, query: str = "", origin: bytes = b"http://localhost") -> tuple[Socket, Any]:
    cookie = (await sync_to_async(cookie_of)(user)).encode() if user else b""
    headers = [(b"host", b"localhost"), (b"origin", origin), (b"cookie", cookie)]
    socket = Socket(application, f"/ws/chats/{query}", headers)
    return socket, await socket.connect()


async def test_nobody_is_told_of_anothers_chats(chat, generation, ada, grace, staff):
    slot = {**picture()["slots"][0], "state": "decode", "generation": generation.id.hex}
    await show(slots=[slot])
    own, _ = await dial(ada)
    assert (await own.receive_json_from())["chats"].keys() == {str(chat.pk)}
    others = [(await dial(other, f"?since={people.NOTHING}"))[0] for other in (grace, staff)]
    await sync_to_async(feed.changed)(ada, chat)
    while not (await own.receive_json_from())["changed"]:
        pass
    for other in others:
        for _ in range(2):  # the second is what is told when nothing has happened
            news = await other.receive_json_from()
            assert (news["chats"], news["changed"]) == ({}, [])
        await other.disconnect()
    await own.disconnect()


async def test_an_answer_in_anothers_chat_is_not_ones_own_by_being_its_generation_s_user(chat, grace):
    def plant() -> None:
        Generation.objects.create(message=chat.add("assistant"), user=grace)

    await sync_to_async(plant)()
    socket, _ = await dial(grace)
    assert (await socket.receive_json_from())["chats"] == {}
    await socket.disconnect()


async def test_who_is_not_signed_in_is_told_nothing(generation):
    socket, _ = await dial(None)
    assert await socket.receive_output() == {"type": "websocket.close", "code": 4403}


async def test_no_other_site_can_open_it(ada):
    _, (is_open, _) = await dial(ada, origin=b"https://evil.example")
    assert not is_open


@pytest.mark.parametrize("said", ["rubbish", "[" * 100_000, b"{}"])
async def test_what_no_page_of_ours_says_ends_it(said, ada):
    socket, _ = await dial(ada)
    await socket.send_to(**{"bytes_data" if isinstance(said, bytes) else "text_data": said})
    while (message := await socket.receive_output())["type"] == "websocket.send":
        pass
    assert message == {"type": "websocket.close", "code": 1003}
    await socket.disconnect()


@pytest.mark.parametrize("end", ["is_active", "delete"])
async def test_it_ends_with_its_person(end, ada, monkeypatch):
    monkeypatch.setattr(revocation, "LOOK_EVERY_S", 0.01)
    socket, _ = await dial(ada)
    await socket.receive_json_from()
    people = User.objects.filter(pk=ada.pk)
    await sync_to_async(people.delete if end == "delete" else lambda: people.update(is_active=False))()
    while (message := await socket.receive_output())["type"] == "websocket.send":
        pass
    assert (message["type"], message["code"]) == ("websocket.close", 4403)
