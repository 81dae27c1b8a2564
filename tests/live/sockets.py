"""Bytes to the server and back, with nothing between that would mend them."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterable
from typing import Any, NamedTuple

HANG = 60.0  # seconds; whoever says nothing for so long hangs


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def message(self) -> str:
        """Of an error in the shape of the API's."""
        found: str = json.loads(self.body)["error"]["message"]
        return found


def send(port: int, parts: Iterable[bytes], *, end: bool = False) -> bytes:
    """Everything that the server says until it closes. `end`: nothing follows, and it is told so."""
    with socket.create_connection(("127.0.0.1", port), HANG) as connection:
        said = b""
        try:
            for part in parts:
                connection.sendall(part)
            if end:
                with contextlib.suppress(OSError):  # it may have hung up already, and said why
                    connection.shutdown(socket.SHUT_WR)
            while data := connection.recv(1 << 16):
                said += data
        except ConnectionError:
            pass  # it has heard enough
        return said


def parse(said: bytes) -> list[Answer]:
    """The answers in what a server has said."""
    answers = []
    while said:
        head, _, said = said.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while said:
                size, _, said = said.partition(b"\r\n")
                chunk, said = said[: int(size, 16)], said[int(size, 16) + 2 :]
                if not chunk:
                    break
                body += chunk
        else:
            length = int(headers.get("content-length", 0))
            body, said = said[:length], said[length:]
        answers.append(Answer(int(first.split()[1]), headers, body))
    return answers


def post(path: str, body: bytes, *headers: str, version: str = "1.1", length: Any = None) -> bytes:
    """A request, after which the server may close."""
    length = len(body) if length is None else length
    lines = [
        f"POST {path} HTTP/{version}",
        "Host: localhost",
        "Connection: close",
        f"Content-Length: {length}",
        *headers,
    ]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
