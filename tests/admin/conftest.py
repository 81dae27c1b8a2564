from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from inference.broker.connect import sync_client


@pytest.fixture(autouse=True)
def _empty_redis() -> None:
    """No worker, no command."""
    sync_client().flushdb()


@pytest.fixture
def admin_user(db) -> User:
    """As pytest-django's, without the half second that a password's hash takes."""
    return User.objects.create_user("root", is_staff=True, is_superuser=True)


@pytest.fixture
def staff_with(db) -> Callable[..., Client]:
    """`staff_with("view_generation")` -> signed in as ada, who is staff and may do that."""

    def make(*permissions: str) -> Client:
        user = User.objects.create_user("ada", is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        client = Client()
        client.force_login(user)
        return client

    return make
