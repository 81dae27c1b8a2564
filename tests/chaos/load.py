"""`make load`, or `python -m tests.chaos.load`: many open streams on one web process, most of them waiting.

Prints the silences of the streams, the web process's memory for each, and how long page requests take
beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

from inference.broker.keys import PREFIX
from tests.e2e.stack import PASSWORD, Stack

from .http import Cut, Exchange
from .page import Session
from .processes import Processes

FLAGS: dict[str, int | float | str] = {"ctx-size": 4096, "threads": 1, "temp": 0}
AT_ONCE = 25  # streams that are being opened at the same time
TOKENS = 1000  # of each stream: more than anyone gets to
EVERY = 0.1  # seconds between two page requests
ALONE = 10.0  # seconds of page requests before there is any stream
SETTLED = 3.0  # seconds after which the server has noticed that all have left
ALLOWED = 2.2  # seconds of silence: a comment is due after 2


class Stream:
    """One reader, who notes when bytes came. Times are seconds of the loop's clock."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.times: list[float] = []  # the first is when it was asked for
        self.n_bytes = 0
        self.error = ""

    async def read(self, port: int, opening: asyncio.Semaphore) -> None:
        clock = asyncio.get_running_loop().time
        prompt = f"Chat number {self.number}: tell me a long story about a lighthouse."
        body = {"prompt": prompt, "n_predict": TOKENS, "ignore_eos": True, "stream": True}
        headers = {"Content-Type": "application/json"}
        try:
            async with opening:
                self.times.append(clock())
                raw = json.dumps(body).encode()
                exchange = await Exchange.open(port, "POST", "/completion", raw, headers)
            async with exchange:
                if exchange.status != 200:
                    self.error = f"{exchange.status}: {(await exchange.read())[:200]!r}"
                    return
                while piece := await exchange.piece():
                    self.times.append(clock())
                    self.n_bytes += len(piece)
            self.error = "it ended"
        except Cut as cut:
            self.error = str(cut)

    def silences(self, until: float) -> list[float]:
        """Seconds between bytes, from the first bytes to `until`."""
        return [b - a for a, b in itertools.pairwise([*self.times[1:], until])]


async def pages(port: int, session: Session, seconds: float) -> dict[str, list[float]]:
    """How long a page of somebody who has signed in and /health take, in seconds."""
    found: dict[str, list[float]] = {"GET /": [], "GET /health": []}
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for name, times in found.items():
            began = time.perf_counter()
            async with await session.get(port, name.removeprefix("GET ")) as answer:
                await answer.read()
                if answer.status != 200:
                    raise RuntimeError(f"{name}: {answer.status}")
            times.append(time.perf_counter() - began)
            await asyncio.sleep(EVERY)
    return found


def rss(pid: int) -> int:
    """Resident memory of a process in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def show(name: str, values: Sequence[float], unit: float = 1e3, suffix: str = "ms") -> None:
    """The distribution of times in seconds."""
    ordered = sorted(values)
    at = {f"p{p:g}": ordered[min(len(ordered) - 1, int(p / 100 * len(ordered)))] for p in (50, 90, 99, 99.9)}
    at["longest"] = ordered[-1]
    print(
        f"{name:38} " + "  ".join(f"{k} {v * unit:.3g} {suffix}" for k, v in at.items()),
        f"  n {len(ordered)}",
    )


async def waiting(processes: Processes) -> str:
    """How many chats are parked, queued and resident."""
    async with processes.redis() as client:
        [picture] = [
            json.loads(await client.get(key) or "{}") for key in await client.keys(f"{PREFIX}worker:*")
        ]
    busy = sum(slot["state"] in ("prefill", "decode") for slot in picture["slots"])
    return f"{len(picture['parked'])} parked, {len(picture['queue'])} queued, {busy} in a slot"


class Measured(NamedTuple):
    """What was seen of the web process in some span of time."""

    pages: dict[str, list[float]]
    rss: int  # bytes, at its end
    seconds: float
    cpu: float  # seconds

    @property
    def share(self) -> float:
        """Of one core."""
        return self.cpu / self.seconds


async def measure(port: int, session: Session, web: int, seconds: float) -> Measured:
    began, used = time.monotonic(), cpu(web)
    found = await pages(port, session, seconds)
    return Measured(found, rss(web), time.monotonic() - began, cpu(web) - used)


async def load(n_streams: int, seconds: float, parallel: int, folder: Path) -> None:
    stack = Stack(folder, **FLAGS, parallel=parallel)
    processes = Processes(stack, workers=1)
    await processes.start()
    readers: list[asyncio.Task[None]] = []
    try:
        session = await Session.sign_in(stack.port, "ada", PASSWORD, folder / "db.sqlite3")
        web = processes.pid("web")
        assert web is not None
        alone = await measure(stack.port, session, web, ALONE)
        streams, opening = [Stream(i) for i in range(n_streams)], asyncio.Semaphore(AT_ONCE)
        began = time.monotonic()
        readers = [asyncio.create_task(stream.read(stack.port, opening)) for stream in streams]
        while not all(len(stream.times) > 1 or stream.error for stream in streams):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        print(f"{n_streams} streams open after {time.monotonic() - began:.1f} s: {await waiting(processes)}")
        beside = await measure(stack.port, session, web, seconds)
        now = asyncio.get_running_loop().time()
        print(f"after {seconds:.0f} s more: {await waiting(processes)}")
        report(streams, now, alone, beside)
        await hang_up(readers)
        await asyncio.sleep(SETTLED)
        print(f"all have left: {await waiting(processes)}, web process {rss(web) / 2**20:.1f} MiB")
    finally:
        await hang_up(readers)
        await processes.stop()


def report(streams: list[Stream], now: float, alone: Measured, beside: Measured) -> None:
    opened = [stream for stream in streams if stream.times[1:]]
    silences = [silence for stream in opened for silence in stream.silences(now)]
    show("silence", silences, 1, "s")
    show("longest silence of each stream", [max(stream.silences(now)) for stream in opened], 1, "s")
    show("from a request to its first bytes", [s.times[1] - s.times[0] for s in opened], 1, "s")
    print(f"silences above {ALLOWED} s: {sum(s > ALLOWED for s in silences)} of {len(silences)}")
    for name, times in alone.pages.items():
        show(f"{name}, no streams", times)
        show(f"{name}, beside {len(streams)} streams", beside.pages[name])
    print(
        f"web process: {alone.rss / 2**20:.1f} MiB before, {beside.rss / 2**20:.1f} MiB with them, "
        f"{(beside.rss - alone.rss) / len(streams) / 1024:.1f} KiB a stream; "
        f"{100 * alone.share:.0f} % of a core before, {100 * beside.share:.0f} % with them"
    )
    said = sum(at > now - beside.seconds for stream in streams for at in stream.times)
    more = beside.cpu - alone.share * beside.seconds
    print(f"web process: {1e3 * more / said:.2f} ms of CPU each time that a stream heard something")
    for error in {stream.error for stream in streams if stream.error}:
        print(f"{sum(stream.error == error for stream in streams)} streams: {error}")


async def hang_up(readers: list[asyncio.Task[None]]) -> None:
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.load", description=__doc__)
    parser.add_argument("--streams", type=int, default=500, metavar="N", help="default: 500")
    parser.add_argument("--seconds", type=float, default=60.0, help="for which all are open (default: 60)")
    parser.add_argument("--parallel", type=int, default=8, metavar="N", help="slots (default: 8)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        asyncio.run(load(args.streams, args.seconds, args.parallel, Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
