"""What operators who watch cost: two endless chats, with nobody at a monitor and with twenty, by turns.

The decode rate and the worker's CPU a step are ratios of watched over unwatched. Where the model's threads
have all cores, whatever else computes shows in both: `bench` is what this process takes, which reads.
"""

from __future__ import annotations

import http.cookiejar
import json
import re
import selectors
import socket
import statistics
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import NamedTuple

from inference.broker.keys import snapshot
from tests.e2e.stack import PASSWORD, Stack
from tests.web.websocket import handshake

MONITORS = 20
SECONDS = 15.0  # of each measurement
SETTLE_S = 3.0
GULP_S = 0.5  # between two reads
TICK_S = 0.01  # of the CPU times in /proc


class Figures(NamedTuple):
    tokens: float  # a second
    step: float  # ms of the worker's CPU
    web: float  # of a core
    redis: float  # of a core
    bench: float  # of a core
    pictures: float  # a second, to each monitor
    received: float  # kB a second, by each monitor


def report(model_path: str, n_threads: int, rounds: int) -> None:
    """Print the ratios' medians and ranges, and what the web process takes."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        stack = Stack(
            Path(folder), **{"model": model_path, "ctx-size": 1024, "parallel": 4, "threads": n_threads}
        )
        stack.flags.append("--context-shift")
        stack.start()
        try:
            _report(stack, rounds)
        finally:
            stack.stop()


def _report(stack: Stack, rounds: int) -> None:
    cookie = _sign_in(stack)
    with stack.complete("Once upon a time", -1) as one, stack.complete("There was a king", -1) as other:
        for stream in (one, other):
            stream.wait_until_it_writes()
        without, watched = [], []
        for i in range(rounds):
            for n in (0, MONITORS) if i % 2 else (MONITORS, 0):  # each first as often as the other
                (watched if n else without).append(_measure(stack, cookie, n))
        stack.cancel_all()
    for name, at in (("tokens/s", 0), ("worker's CPU a step", 1)):
        ratios = [a[at] / b[at] for a, b in zip(watched, without, strict=True)]
        _show(f"{name}, {MONITORS} monitors / none", ratios)
    for name in ("web", "redis", "bench"):
        for n, all in ((0, without), (MONITORS, watched)):
            _show(f"{name}, of a core, {n} monitors", [getattr(figures, name) for figures in all])
    _show("pictures a second to each", [figures.pictures for figures in watched])
    _show("kB a second to each", [figures.received for figures in watched])


def _sign_in(stack: Stack) -> str:
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    address = stack.url + "/accounts/login/"
    page = opener.open(address).read().decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert token
    form = {"username": "ada", "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
    opener.open(urllib.request.Request(address, urllib.parse.urlencode(form).encode(), {"Referer": address}))
    return "; ".join(f"{c.name}={c.value}" for c in jar)


class _Monitors:
    """Pages at the monitor that ask for the last five minutes. One thread reads what comes for all of them,
    and seldom: the machine is the product's."""

    def __init__(self, stack: Stack, cookie: str, n: int) -> None:
        self.received = bytearray()  # by the first
        self._selector = selectors.DefaultSelector()
        for i in range(n):
            client = _dial(stack, cookie)
            client.setblocking(False)
            self._selector.register(client, selectors.EVENT_READ, i)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> _Monitors:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self._selector.close()

    def _read(self) -> None:
        while not self._is_over.wait(GULP_S):
            for key, _ in self._selector.select(0):
                data = key.fileobj.recv(1 << 20)  # type: ignore[union-attr]
                if key.data == 0:
                    self.received += data


def _dial(stack: Stack, cookie: str) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", stack.port))
    client.sendall(handshake(stack.port, "/ws/monitor/", cookie=cookie))
    head = client.recv(4096)
    assert b" 101 " in head, head
    text = json.dumps({"span": "5m"}).encode()
    client.sendall(bytes([0x81, 0x80 | len(text)]) + bytes(4) + text)  # masked with zeros
    return client


def _measure(stack: Stack, cookie: str, n: int) -> Figures:
    with _Monitors(stack, cookie, n) as monitors:
        time.sleep(SETTLE_S)
        cpu, counters, began = _cpu(stack), _counters(stack), time.monotonic()
        monitors.received.clear()
        time.sleep(SECONDS)
        seconds = time.monotonic() - began
        later, counted = _cpu(stack), _counters(stack)
        received = bytes(monitors.received)
    tokens, steps = (counted[name] - counters[name] for name in ("tokens_predicted_total", "n_decode_total"))
    used = {name: later[name] - cpu[name] for name in cpu}
    return Figures(
        tokens=tokens / seconds,
        step=1e3 * used["worker"] / steps,
        web=used["web"] / seconds,
        redis=used["redis"] / seconds,
        bench=used["bench"] / seconds,
        pictures=received.count(b'{"workers":') / seconds,
        received=1e-3 * len(received) / seconds,
    )


def _cpu(stack: Stack) -> dict[str, float]:
    """Seconds that each of its processes has computed, and this one."""
    found = {"redis": 0.0, "bench": time.process_time()}
    pid = stack.process.pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        command = Path(f"/proc/{child}/cmdline").read_text().split("\0")
        times = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
        name = next((name for name in ("worker", "web") if name in command), "redis")
        found[name] = found.get(name, 0.0) + (int(times[11]) + int(times[12])) * TICK_S
    return found


def _counters(stack: Stack) -> dict[str, float]:
    with stack.redis() as client:
        [key] = client.scan_iter(snapshot("*"))
        found: dict[str, float] = json.loads(client.get(key) or "{}")["counters"]
        return found


def _show(name: str, values: list[float]) -> None:
    print(f"{name:54s} {statistics.median(values):.3f} ({min(values):.3f}..{max(values):.3f})", flush=True)
