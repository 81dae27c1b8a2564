"""A cheap SSE client: many streams on one thread, a time for every read, no parsing while it measures."""

from __future__ import annotations

import itertools
import json
import selectors
import socket
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Stream:
    """One streaming request. Times are seconds of time.monotonic()."""

    port: int
    body: dict[str, Any]
    path: str = "/completion"
    sent_at: float = 0.0
    reads: list[tuple[float, bytes]] = field(default_factory=list)
    sock: socket.socket | None = None

    def open(self) -> None:
        payload = json.dumps(self.body).encode()
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(payload)}\r\nConnection: close\r\n\r\n"
        )
        self.sock = socket.create_connection(("127.0.0.1", self.port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent_at = time.monotonic()
        self.sock.sendall(head.encode() + payload)
        self.sock.setblocking(False)

    def token_times(self) -> list[float]:
        """When each `data:` line with text arrived."""
        times, rest = [], b""
        for at, chunk in self.reads:
            *lines, rest = (rest + chunk).split(b"\n")
            times += [at for line in lines if line.startswith(b"data: {") and b'"stop":true' not in line]
        return times

    @property
    def ttft(self) -> float:
        return self.token_times()[0] - self.sent_at

    def worst_gap(self) -> float:
        times = self.token_times()
        return max(b - a for a, b in itertools.pairwise(times))

    def check(self, tokens: int) -> None:
        got = len(self.token_times())
        if got < 0.9 * tokens:  # a few tokens show no text
            raise SystemExit(f"port {self.port}: {got} of {tokens} tokens came: {self.reads[:2]!r}")


def run(streams: list[Stream], until: float = 300.0) -> list[Stream]:
    """Open all, read all to their ends."""
    selector = selectors.DefaultSelector()
    for stream in streams:
        stream.open()
        assert stream.sock is not None
        selector.register(stream.sock, selectors.EVENT_READ, stream)
    deadline = time.monotonic() + until
    while selector.get_map():
        if time.monotonic() > deadline:
            raise SystemExit("the streams did not end in time")
        for key, _ in selector.select(1):
            data = key.fileobj.recv(65536)  # type: ignore[union-attr]
            if data:
                key.data.reads.append((time.monotonic(), data))
            else:
                selector.unregister(key.fileobj)
                key.fileobj.close()  # type: ignore[union-attr]
    return streams


def completion(prompt: str, n: int) -> dict[str, Any]:
    return {
        "prompt": prompt,
        "n_predict": n,
        "ignore_eos": True,
        "temperature": 0,
        "seed": 1,
        "stream": True,
        "cache_prompt": False,
    }
