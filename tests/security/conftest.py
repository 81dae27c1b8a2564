from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser

from inference import revocation
from inference.broker.connect import sync_client
from inference.broker.keys import CONTROL
from inference.models import Chat, Generation, Share
from tests.api.conftest import empty_redis, options  # noqa: F401

SECRET = "nobody but ada may read this"


@pytest.fixture
def ada(transactional_db) -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def grace(transactional_db) -> User:
    return User.objects.create_user("grace")


@pytest.fixture
def staff(transactional_db) -> User:
    return User.objects.create_user("root", is_staff=True)


@pytest.fixture
def chat(ada: User) -> Chat:
    chat = Chat.objects.create(user=ada, title=SECRET)
    chat.add("user", SECRET)
    return chat


@pytest.fixture
def generation(chat: Chat) -> Generation:
    """Ada's, on its way."""
    return Generation.objects.create(message=chat.add("assistant"), user=chat.user)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams are looked after so often that a test need not wait."""
    monkeypatch.setattr(revocation, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(revocation, "AGAIN_S", 0.5)


def argument(route: str, generation: Generation) -> list[object]:
    """What an address of the dashboard takes: the object of this generation's chat that its route names."""
    message = generation.message
    assert message
    kind = route.partition("/")[0] if "<" in route else ""
    if kind == "shares":
        return [Share.objects.get_or_create(chat=message.chat, leaf=message)[0].pk]
    if kind == "s":
        return [Share.objects.get_or_create(chat=message.chat, leaf=message)[0].token]
    found = {"chats": message.chat.pk, "messages": message.pk, "generations": generation.pk}
    return [found[kind]] if kind else []


def cancelled() -> list[str]:
    """The ids of the generations that workers were told to cancel."""
    commands: Any = sync_client().xrange(CONTROL)
    return [fields[b"id"].decode() for _, fields in commands if fields[b"kind"] == b"cancel"]


def cookie_of(user: User) -> str:
    """The header with which this person's browser is known."""
    browser = Browser()
    browser.force_login(user)
    return "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())
