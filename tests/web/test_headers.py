"""Headers that the server beneath us would obey, whoever sends them."""

from __future__ import annotations

import pytest

from tests.live.sockets import parse
from tests.web.conftest import WebServer

pytestmark = pytest.mark.django_db(transaction=True)
ODD = [b"/v1", b"/below", b"//elsewhere.example", b"\xff"]


def ask(server: WebServer, path: str, header: bytes) -> int:
    with server.connect() as client:
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n".encode()
        client.sendall(head + header + b"\r\n\r\n")
        said = b""
        while part := client.recv(1 << 16):
            said += part
    return parse(said)[0].status


@pytest.mark.parametrize("value", ODD)
async def test_nobody_says_below_which_path_we_are(server: WebServer, value: bytes) -> None:
    """A proxy that keeps a path from the world would be got around: `/below/admin/` would be `/admin/`."""
    assert ask(server, "/openapi.json", b"Daphne-Root-Path: " + value) == 200
    assert ask(server, "/below/openapi.json", b"Daphne-Root-Path: " + value) == 404


async def test_a_websocket_may_ask_for_any_subprotocol(server: WebServer) -> None:
    upgrade = (
        b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: http://elsewhere.example\r\n"
    )
    assert ask(server, "/ws/chats/", upgrade + b"Sec-WebSocket-Protocol: \xff") == 403
