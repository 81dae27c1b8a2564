"""Pages of other sites: what the browser of somebody who is here does for them, and what it must not."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from inference.broker.connect import sync_client
from inference.broker.keys import CONTROL, JOBS
from inference.messages import Answer
from project.asgi import application
from tests.api.play import Client, fetch, working
from tests.broker.play import show
from tests.dashboard.test_monitor_feed import Socket

from .conftest import cookie_of

HOST = "127.0.0.1:8000"
FOREIGN = (
    "https://evil.example",
    "http://127.0.0.1.evil.example",
    "http://localhost.evil.example",
    "null",
    "",
)
LOCAL = (f"http://{HOST}", "http://localhost:3000", "http://127.0.0.1:5173", "http://[::1]:3000")


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
        ("POST", "/completion", {"prompt": "x"}),
        ("POST", "/tokenize", {"content": "x"}),
        ("POST", "/slots/0?action=park", {}),
        ("GET", "/slots", None),
        ("GET", "/props", None),
    ],
)
async def test_a_foreign_page_cannot_use_the_open_api(origin, method, path, body):
    await show()
    client = await fetch(method, path, body, Host=HOST, Origin=origin, Content_Type="text/plain")
    assert (client.status, client.json["error"]["type"]) == (403, "permission_error")
    assert "API key" in client.json["error"]["message"]
    assert not sync_client().exists(JOBS, CONTROL)


async def test_a_key_that_opens_nothing_is_no_key():
    await show()
    client = await fetch(
        "POST", "/completion", {"prompt": "x"}, Host=HOST, Origin=FOREIGN[0], Authorization="Bearer none"
    )
    assert client.status == 403


@pytest.mark.parametrize("origin", LOCAL)
async def test_a_page_of_this_machine_can(origin):
    async with working() as worker:
        client = Client("POST", "/tokenize", {"content": "x"}, Host=HOST, Origin=origin)
        await worker.says(await worker.takes(), Answer({"tokens": []}))
        await client.ends()
    assert client.status == 200
    assert client.headers["access-control-allow-origin"] == origin


async def test_a_page_that_the_operator_trusts_can(settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://app.example"]
    await show()
    assert (await fetch("GET", "/slots", Host=HOST, Origin="https://app.example")).status == 200


async def test_a_foreign_page_can_where_anybody_may(options):
    options(allow_anonymous=True)
    await show()
    assert (await fetch("GET", "/slots", Host=HOST, Origin=FOREIGN[0])).status == 200


async def test_a_foreign_page_with_a_key_can(options):
    options(api_keys=("secret",))
    await show()
    key = {"Authorization": "Bearer secret"}
    client = await fetch("GET", "/slots", Host=HOST, Origin=FOREIGN[0], **key)
    assert (client.status, client.headers["access-control-allow-origin"]) == (200, FOREIGN[0])


async def test_a_session_opens_nothing_of_the_api(options, staff):
    """So that a foreign page gains nothing by the cookies that a browser might send with its requests."""
    options(api_keys=("secret",))
    await show()
    cookie = await sync_to_async(cookie_of)(staff)
    client = await fetch("GET", "/slots", Host=HOST, Origin=FOREIGN[0], Cookie=cookie)
    assert client.status == 401
    assert "access-control-allow-credentials" not in client.headers


async def test_the_stream_of_a_chat_is_for_our_own_pages(generation, ada):
    cookie = await sync_to_async(cookie_of)(ada)
    path = f"/generations/{generation.pk}/events"
    client = Client("GET", path, Host=HOST, Origin=FOREIGN[0], Cookie=cookie)
    await client.hears("waiting")
    await client.leaves()
    assert "access-control-allow-origin" not in client.headers


async def monitor(user: User, **headers: str) -> Any:
    cookie = await sync_to_async(cookie_of)(user)
    raw = [(name.encode(), value.encode()) for name, value in {**headers, "cookie": cookie}.items()]
    return Socket(application, "/ws/monitor/", raw)


@pytest.mark.parametrize("origin", [*FOREIGN, "http://127.0.0.1:3000", "http://localhost:8000"])
async def test_a_websocket_of_another_origin_is_refused(origin, staff):
    socket = await monitor(staff, host=HOST, origin=origin)
    assert not (await socket.connect())[0]


async def test_a_websocket_to_nowhere_is_refused(staff):
    headers = [(b"host", HOST.encode()), (b"origin", f"http://{HOST}".encode())]
    assert not (await Socket(application, "/ws/nothing/", headers).connect())[0]


async def test_a_websocket_without_an_origin_is_refused(staff):
    socket = await monitor(staff, host=HOST)
    assert not (await socket.connect())[0]


async def test_a_websocket_is_refused_also_where_every_host_is_allowed(staff, settings, options):
    options(host="0.0.0.0")
    settings.ALLOWED_HOSTS = ["*"]
    socket = await monitor(staff, host="gpu.example", origin="https://evil.example")
    assert not (await socket.connect())[0]


@pytest.mark.parametrize("origin", [f"http://{HOST}", f"https://{HOST}"])
async def test_a_websocket_of_our_own_page_is_opened(origin, staff):
    socket = await monitor(staff, host=HOST, origin=origin)
    assert (await socket.connect())[0]
    assert "workers" in await socket.receive_json_from()
    await socket.disconnect()
