"""The monitor, holding chats and the admin are for staff."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser
from django.urls import reverse

from inference.broker.connect import sync_client
from inference.broker.keys import CONTROL
from inference.models import ApiKey, OperatorAction
from project.asgi import application
from tests.api.play import fetch
from tests.broker.play import show
from tests.dashboard.test_monitor_feed import Socket

from .conftest import cookie_of


def test_the_monitor_is_not_for_others(client, ada):
    client.force_login(ada)
    assert client.get("/monitor/").status_code == 403


@pytest.mark.parametrize("kind", ["park", "unpark"])
def test_nor_is_holding_a_chat_in_the_browser(kind, client, ada, generation):
    client.force_login(ada)
    reply = client.post(f"/monitor/{kind}", {"worker": "w1", "generation": generation.pk})
    assert reply.status_code == 403
    assert not sync_client().exists(CONTROL)


async def test_nor_by_a_key_whose_owner_is_not_staff(ada):
    await show()
    _, plain = await sync_to_async(ApiKey.objects.create_key)("laptop", ada)
    client = await fetch("POST", "/slots/0?action=park", {}, Authorization=f"Bearer {plain}")
    assert client.status == 403
    assert not sync_client().exists(CONTROL)
    assert not await OperatorAction.objects.aexists()


@pytest.fixture(params=["ada", None])
def cookie(request) -> bytes:
    """Of somebody who is not staff, or of nobody."""
    return cookie_of(request.getfixturevalue(request.param)).encode() if request.param else b""


async def test_nor_is_the_live_picture(cookie):
    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"cookie", cookie)]
    await show()
    socket = Socket(application, "/ws/monitor/", headers)
    await socket.connect()
    assert await socket.receive_output() == {"type": "websocket.close", "code": 4403}


@pytest.mark.parametrize(
    "path", ["index", "inference_message_changelist", "inference_apikey_add", "auth_user_changelist"]
)
def test_the_admin_is_not_for_others(path, client, ada):
    url = reverse(f"admin:{path}")
    assert client.get(url).status_code == 302
    client.force_login(ada)
    reply = client.get(url, follow=True, headers={"Accept": "text/html"})
    assert reply.status_code == 403
    assert "for staff" in reply.text


@pytest.mark.parametrize("model", ["message", "chat", "apikey", "generation"])
def test_staff_without_a_permission_read_nothing_in_the_admin(model, client, staff, generation):
    client.force_login(staff)
    assert client.get(reverse(f"admin:inference_{model}_changelist")).status_code == 403


def test_who_is_staff_goes_from_the_admins_door_to_the_one_sign_in_page(client, staff):
    assert client.get("/admin/").url == "/admin/login/?next=/admin/"
    assert client.get("/admin/login/?next=/admin/").url == "/accounts/login/?next=/admin/"
    client.force_login(staff)
    assert client.get("/admin/login/").url == "/admin/"


def test_nobody_is_not_staff():
    assert not AnonymousUser().is_staff
