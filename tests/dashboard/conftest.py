from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from inference.broker.connect import sync_client
from inference.models import Chat, Generation


@pytest.fixture
def ada(db) -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def grace(db) -> User:
    return User.objects.create_user("grace")


@pytest.fixture
def staff(db) -> User:
    """Who may look at the monitor and act there."""
    staff = User.objects.create_user("root", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="change_generation"))
    return staff


@pytest.fixture
def onlooker(db) -> User:
    """Staff who may look, and no more."""
    return User.objects.create_user("eve", is_staff=True)


@pytest.fixture
def as_ada(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


@pytest.fixture
def chat(ada: User) -> Chat:
    return Chat.objects.create(user=ada, title="Boats")


@pytest.fixture
def generation(chat: Chat) -> Generation:
    """One of ada's that is on its way."""
    chat.add("user", "Tell me of boats")
    answer = chat.add("assistant")
    return Generation.objects.create(message=answer, user=chat.user, stream=True)


@pytest.fixture(autouse=True)
def _empty_redis() -> None:
    """No worker, no job, no log."""
    sync_client().flushdb()


@pytest.fixture
def redis_away(redis_server) -> None:
    """As if Redis had gone, until the end of the test."""
    redis_server.kill()
