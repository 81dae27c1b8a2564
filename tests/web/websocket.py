"""The first words of a browser that opens a WebSocket."""

from __future__ import annotations


def handshake(port: int, path: str, *, cookie: str = "") -> bytes:
    """As a page of this server opens it."""
    lines = [
        f"GET {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        f"Origin: http://127.0.0.1:{port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        f"Cookie: {cookie}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"
