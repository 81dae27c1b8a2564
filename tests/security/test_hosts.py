"""A site whose name is made to mean this machine (DNS rebinding) gets nothing of an open loopback address."""

from __future__ import annotations

import pytest

from inference.broker.connect import sync_client
from inference.broker.keys import JOBS
from project.asgi import application
from tests.api.play import fetch
from tests.broker.play import show
from tests.dashboard.test_monitor_feed import Socket

from .conftest import cookie_of

OURS = ("127.0.0.1:8000", "localhost", "localhost:3000", "[::1]:8000", "app.localhost")
FOREIGN = (
    "rebound.example",
    "rebound.example:8000",
    "127.0.0.1.rebound.example",
    "0.0.0.0",
    "",
    "[::1",
    "a b",
)


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/chat/completions"),
        ("POST", "/completion"),
        ("OPTIONS", "/completion"),
        ("GET", "/v1/models"),
        ("GET", "/slots"),
        ("GET", "/health"),
        ("GET", "/nowhere"),
        ("GET", "/"),
    ],
)
async def test_a_foreign_name_is_refused_everywhere(host, method, path):
    await show()
    client = await fetch(method, path, {"prompt": "x"} if method == "POST" else None, Host=host)
    assert client.status == 400
    assert "ALLOWED_HOSTS" in client.json["error"]["message"]
    assert "access-control-allow-origin" not in client.headers
    assert not sync_client().exists(JOBS)


@pytest.mark.parametrize("host", OURS)
async def test_the_names_of_this_machine_are_answered(host, settings):
    settings.ALLOWED_HOSTS = ["localhost", ".localhost", "127.0.0.1", "[::1]"]
    await show()
    assert (await fetch("GET", "/health", Host=host)).status == 200


async def test_a_name_that_the_operator_gave_is_answered(settings):
    settings.ALLOWED_HOSTS = ["chat.example"]
    await show()
    assert (await fetch("GET", "/health", Host="chat.example")).status == 200
    assert (await fetch("GET", "/health", Host="127.0.0.1")).status == 400


async def test_elsewhere_the_api_is_reached_by_any_name_and_opened_by_a_key(options):
    options(host="0.0.0.0", api_keys=("secret",))
    await show()
    for key, status in (("secret", 200), ("wrong", 401)):
        client = await fetch("GET", "/slots", Host="gpu.example", Authorization=f"Bearer {key}")
        assert client.status == status


async def test_a_websocket_of_a_foreign_name_is_refused_also_where_origin_and_host_agree(staff):
    from asgiref.sync import sync_to_async

    cookie = (await sync_to_async(cookie_of)(staff)).encode()
    headers = [(b"host", b"rebound.example"), (b"origin", b"http://rebound.example"), (b"cookie", cookie)]
    socket = Socket(application, "/ws/monitor/", headers)
    assert not (await socket.connect())[0]
