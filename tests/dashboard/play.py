"""The turns of a chat, as a test lays, reads and ends them."""

from __future__ import annotations

from django.test import Client

from dashboard import conversation
from inference.messages import Accepted, Token
from inference.models import Chat, Generation, Message

from .test_send import finished, last_job, write_log


def add(chat: Chat, role: str, content: str, **row) -> Message:
    """A turn; an answer has a generation, which is over."""
    message = chat.add(role, content)
    if role == "assistant":
        Generation.objects.create(message=message, user=chat.user, **{"state": "finished", **row})
    return message


def read(chat: Chat) -> list[str]:
    chat.refresh_from_db()
    return [message.content for message in chat.path()]


def asked() -> list[str]:
    """What the model was last asked to go on with."""
    return [message["content"] for message in last_job().body["messages"]]


def end(chat: Chat, content: str) -> None:
    """The answer on its way is written."""
    generation = Generation.objects.get(message__chat=chat, state="queued")
    write_log(generation, Accepted(5, 1, -1), Token(1, content), finished())
    conversation.settle(generation)


def post(client: Client, message: Message, what: str, **fields):
    return client.post(f"/messages/{message.pk}/{what}", fields)
