from __future__ import annotations

from contextlib import aclosing

import pytest
from django.db import OperationalError
from django.test import Client

from dashboard import conversation, stream
from inference.broker.publisher import Publisher
from inference.messages import Accepted, Token
from inference.models import Chat

AWAY = OperationalError("it can't be reached")


def fail(*_: object, **__: object) -> None:
    raise AWAY


@pytest.mark.django_db
def test_a_message_is_answered_with_what_to_do(as_ada: Client, chat: Chat, monkeypatch):
    monkeypatch.setattr(conversation, "send", fail)
    reply = as_ada.post(f"/chats/{chat.pk}/messages", {"text": "Hello"}, HTTP_ACCEPT="application/json")
    assert reply.status_code == 503
    assert reply.json()["error"].startswith("The database can't be reached.")
    assert reply["Retry-After"]


@pytest.mark.django_db
def test_a_page_is_a_503_that_says_so(as_ada: Client, monkeypatch):
    monkeypatch.setattr(Chat.objects, "of", fail)
    reply = as_ada.get("/", HTTP_ACCEPT="text/html")
    assert (reply.status_code, b"Nothing is lost" in reply.content) == (503, True)


@pytest.mark.django_db(transaction=True)
async def test_tokens_flow_on(generation, ada, monkeypatch):
    id = generation.id.hex
    await Publisher("w1").publish([(id, 1, Accepted(5, 1, -1))])

    async def find(*_: object) -> None:
        raise AWAY

    monkeypatch.setattr(stream, "find", find)
    monkeypatch.setattr(stream, "KEEPALIVE_S", 0.01)
    async with aclosing(stream.follow(generation, ada, 0)) as chunks:
        async for chunk in chunks:
            if chunk == b": keepalive\n\n":
                await Publisher("w1").publish([(id, 2, Token(1, "Boats"))])
            if b"Boats" in chunk:
                return
