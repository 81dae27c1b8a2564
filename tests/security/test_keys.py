"""API keys: shown once, stored as a hash, and good for nothing the moment they are not to be used."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client as Browser
from django.urls import reverse
from django.utils import timezone

from inference.models import ApiKey
from tests.api.play import fetch
from tests.broker.play import show


@pytest.fixture
def admin(transactional_db) -> Browser:
    browser = Browser()
    browser.force_login(User.objects.create_superuser("root"))
    return browser


def everything_stored() -> str:
    """Each cell of each table."""
    with connection.cursor() as cursor:
        cells = []
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT * FROM {connection.ops.quote_name(table)}")
            cells += [str(cell) for row in cursor.fetchall() for cell in row]
    return "\n".join(cells)


@pytest.mark.parametrize("button", ["_save", "_continue", "_addanother"])
def test_a_new_key_is_in_the_answer_and_nowhere_else(admin, button):
    answer = admin.post(
        reverse("admin:inference_apikey_add"), {"name": "laptop", "notices": "on", button: "1"}
    )
    [plain] = set(re.findall(r"sk-berth-[\w-]{20,}", answer.text))
    assert ApiKey.objects.with_key(plain).get().name == "laptop"
    assert plain not in everything_stored()
    assert plain not in str(answer.cookies) + str(answer.headers)
    assert "no-store" in answer["Cache-Control"]
    row = ApiKey.objects.get()
    for page in ("changelist", "change", "history"):
        url = reverse(f"admin:inference_apikey_{page}", args=[] if page == "changelist" else [row.pk])
        assert plain not in admin.get(url).text


def test_a_key_of_the_command_is_printed_and_not_stored(transactional_db):
    out = StringIO()
    User.objects.create_user("ada")
    call_command(
        "create_api_key",
        *("--name", "laptop", "--user", "ada", "--expires-in", "2"),
        *("--max-concurrent", "3", "--max-output", "40"),
        stdout=out,
    )
    plain = out.getvalue().strip()
    assert plain not in everything_stored()
    row = ApiKey.objects.with_key(plain).get()
    assert (row.max_concurrent, row.max_output) == (3, 40)
    assert row.expires_at is not None
    assert timedelta(days=1) < row.expires_at - timezone.now() <= timedelta(days=2)


@pytest.mark.parametrize("flag", ["--expires-in", "--max-concurrent", "--max-output"])
@pytest.mark.parametrize("value", ["0", "-1", "x", "1e9"])
def test_the_command_refuses_a_bound_that_is_none(flag, value, transactional_db):
    with pytest.raises(CommandError, match="is not a whole number from 1"):
        call_command("create_api_key", "--name", "laptop", f"{flag}={value}")
    assert not ApiKey.objects.exists()


def revoke(row: ApiKey) -> None:
    ApiKey.objects.filter(pk=row.pk).update(revoked_at=timezone.now())


def expire(row: ApiKey) -> None:
    ApiKey.objects.filter(pk=row.pk).update(expires_at=timezone.now())


def deactivate(row: ApiKey) -> None:
    User.objects.filter(api_keys=row).update(is_active=False)


def delete_owner(row: ApiKey) -> None:
    User.objects.filter(api_keys=row).delete()


ENDS: list[Callable[[ApiKey], Any]] = [revoke, expire, deactivate, ApiKey.delete, delete_owner]


@pytest.mark.parametrize("end", ENDS)
async def test_the_next_request_of_a_key_that_has_ended_is_refused(end, ada):
    await show()
    await sync_to_async(ApiKey.objects.create_key)("another, so that the API stays closed")
    row, plain = await sync_to_async(ApiKey.objects.create_key)("laptop", ada)
    key = {"Authorization": f"Bearer {plain}"}
    assert (await fetch("GET", "/slots", **key)).status == 200
    await sync_to_async(end)(row)
    client = await fetch("GET", "/slots", **key)
    assert (client.status, client.headers["www-authenticate"]) == (401, "Bearer")
    assert plain not in client.body.decode()


def test_the_admin_revokes_and_tells_the_state(admin, ada):
    row, _ = ApiKey.objects.create_key("laptop", ada)
    url = reverse("admin:inference_apikey_changelist")
    assert "Usable" in admin.get(url).text
    deactivate(row)
    assert "Owner inactive" in admin.get(url).text
    admin.post(url, {"action": "revoke", "_selected_action": [row.pk]})
    assert "Revoked" in admin.get(url).text


@pytest.mark.parametrize(
    "given",
    ["", "sk-berth-", "sk-berth-%", "' OR 1=1 --", "\0", "x" * 100_000, "é", "Bearer", "*"],
)
async def test_what_is_no_key_opens_nothing(given, ada):
    await show()
    await sync_to_async(ApiKey.objects.create_key)("laptop", ada)
    for header in ({"Authorization": f"Bearer {given}"}, {"X_Api_Key": given}, {"Authorization": given}):
        assert (await fetch("GET", "/slots", **header)).status == 401


async def test_neither_the_prefix_nor_the_hash_of_a_key_opens_anything(ada):
    await show()
    row, plain = await sync_to_async(ApiKey.objects.create_key)("laptop", ada)
    for given in (row.prefix, row.hash, plain[:-1], plain + "x", plain.upper()):
        assert (await fetch("GET", "/slots", X_Api_Key=given)).status == 401


def test_a_key_is_let_in_also_while_its_last_use_cannot_be_written(ada, monkeypatch):
    from django.conf import settings
    from django.db import OperationalError
    from django.db.models import QuerySet

    from inference.auth import _look_up

    def locked(*args: Any, **fields: Any) -> int:
        raise OperationalError("database is locked")

    _, plain = ApiKey.objects.create_key("laptop", ada)
    monkeypatch.setattr(QuerySet, "update", locked)
    assert _look_up(plain, settings.BERTH).name == "laptop"
