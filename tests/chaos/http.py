"""HTTP/1.1 over a connection of its own, cheap enough for hundreds at once, and honest about its end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Mapping
from typing import Any

HOST = "127.0.0.1"
SMALL = 4096  # bytes that a slow reader's side takes before the server has to wait


class Cut(Exception):
    """The connection ended before the answer did. `sent`: the server may have had the request."""

    def __init__(self, why: str, *, sent: bool = True) -> None:
        super().__init__(why)
        self.sent = sent


class Exchange:
    """A request and its answer: `status`, `headers` (names in lower case) and the body in pieces."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.cookies: dict[str, str] = {}
        self._reader, self._writer = reader, writer
        self._left: int | None = None  # bytes of the body; None: chunked, or up to the connection's end
        self._chunked = False

    @classmethod
    async def open(
        cls,
        port: int,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        small: bool = False,
    ) -> Exchange:
        """Send a request and read the answer's head. `small`: with hardly any room for what comes.

        Raises Cut.
        """
        sock = socket.socket()
        sock.setblocking(False)
        if small:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL)
        try:
            await asyncio.get_running_loop().sock_connect(sock, (HOST, port))
            reader, writer = await asyncio.open_connection(sock=sock, limit=SMALL if small else 1 << 16)
        except OSError as error:
            sock.close()
            raise Cut(f"cannot connect: {error.strerror}", sent=False) from None
        except BaseException:
            sock.close()
            raise
        exchange = cls(reader, writer)
        try:
            lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}:{port}", f"Content-Length: {len(body)}"]
            lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
            writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)
            await exchange._read_head()
        except (OSError, asyncio.IncompleteReadError):
            exchange.close()
            raise Cut("the connection was cut before the answer") from None
        except BaseException:
            exchange.close()
            raise
        return exchange

    async def _read_head(self) -> None:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.rstrip().split("\r\n")
        self.status = int(first.split(" ", 2)[1])
        for line in lines:
            name, _, value = line.partition(":")
            name, value = name.lower(), value.strip()
            if name == "set-cookie":
                cookie, _, content = value.partition(";")[0].partition("=")
                self.cookies[cookie] = content
            self.headers[name] = value
        self._chunked = self.headers.get("transfer-encoding") == "chunked"
        if "content-length" in self.headers:
            self._left = int(self.headers["content-length"])

    async def piece(self) -> bytes:
        """The next bytes of the body; b"" at its end. Raises Cut."""
        try:
            if self._chunked:
                size = int(await self._reader.readuntil(b"\r\n"), 16)
                data = await self._reader.readexactly(size + 2)
                return data[:-2]
            if self._left is None:
                return await self._reader.read(1 << 16)
            if not self._left:
                return b""
            data = await self._reader.read(min(self._left, 1 << 16))
            if not data:
                raise Cut("the connection was cut within the answer")
            self._left -= len(data)
            return data
        except (OSError, asyncio.IncompleteReadError, ValueError):
            raise Cut("the connection was cut within the answer") from None

    async def read(self) -> bytes:
        """All that is left of the body. Raises Cut."""
        parts = []
        while part := await self.piece():
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        """Hang up, in whatever state it is."""
        with contextlib.suppress(OSError):
            self._writer.transport.abort()

    async def __aenter__(self) -> Exchange:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def error_of(status: int, raw: bytes) -> str:
    """What an answer that is an error tells its client: the message, or the status alone."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        error: Any = json.loads(raw)["error"]
        return f"{status}: {error if isinstance(error, str) else error['message']}"
    return f"{status} without a message"
