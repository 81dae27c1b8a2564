"""The database at a start: migrated if that is needed, and with somebody who can sign in."""

from __future__ import annotations

import secrets
from typing import NamedTuple

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import DatabaseError, connection, connections
from django.db.migrations.executor import MigrationExecutor

from inference.models import ApiKey

from . import CannotStart

ADMIN = "admin"


class Ready(NamedTuple):
    """A database that can be used: the admin's password where it was made now, and whether keys exist."""

    password: str | None
    has_keys: bool


def prepare() -> Ready:
    """Migrate, and make an admin if nobody is one. Raises CannotStart."""
    try:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            call_command("migrate", interactive=False, verbosity=0)
        return Ready(_make_admin(), ApiKey.objects.exists())
    except DatabaseError as error:
        raise CannotStart(_why(error)) from error
    finally:
        connections.close_all()


def _make_admin() -> str | None:
    if User.objects.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(12)
    _, created = User.objects.get_or_create(
        username=ADMIN, defaults={"is_staff": True, "is_superuser": True, "password": make_password(password)}
    )
    return password if created else None


def has_api_key() -> bool:
    """Whether the admin holds a key that can be used; no while there is no table of them yet."""
    try:
        return "inference_apikey" in connection.introspection.table_names() and (
            ApiKey.objects.all().usable().exists()
        )
    except DatabaseError as error:
        raise CannotStart(_why(error)) from error
    finally:
        connections.close_all()


def _why(error: DatabaseError) -> str:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return f"cannot use the database: {reason}; check DATABASE_URL or --data-dir"
