"""What goes wrong in a chaos run, done to the real processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import time
from collections.abc import Coroutine
from typing import Any

from redis.exceptions import RedisError

from .plan import Fault
from .processes import Processes

ABSENT = 20.0  # seconds for which a fault waits for its victim, which may be on its way back
STOPPED = (12.0, 16.0)  # seconds that a worker is stopped; its lease is shorter
LOCKED = (1.0, 4.0)  # seconds that the database is locked

SIGNALS = {
    "worker": ("worker", signal.SIGKILL),
    "term": ("worker", signal.SIGTERM),
    "web": ("web", signal.SIGKILL),
    "drain": ("web", signal.SIGTERM),
    "redis": ("redis", signal.SIGKILL),
}


class Faults:
    """Carries out faults, one after the other; what lasts goes on beside the next ones."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._lasting: set[asyncio.Task[None]] = set()

    async def do(self, fault: Fault) -> bool:
        """Whether it was done: its victim may not come back in time."""
        if fault.kind == "deaf":
            return await self._deafen()
        if fault.kind == "database":
            self._beside(self._lock_database(_between(LOCKED, fault.lasts)))
            return True
        name, number = SIGNALS.get(fault.kind, ("worker", signal.SIGSTOP))
        pid = await self._find(name, fault.which)
        if pid is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if fault.kind == "stop":
            self._beside(self._wake(pid, _between(STOPPED, fault.lasts)))
        return True

    async def end(self) -> None:
        """Wait until nothing lasts any more."""
        await asyncio.gather(*self._lasting)

    async def wake(self) -> None:
        """End at once what lasts: nobody stays stopped."""
        for task in self._lasting:
            task.cancel()
        if self._lasting:
            await asyncio.wait(self._lasting)

    def _beside(self, lasting: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(lasting)
        self._lasting.add(task)
        task.add_done_callback(self._lasting.discard)

    async def _find(self, name: str, which: int) -> int | None:
        deadline = time.monotonic() + ABSENT
        while True:
            pid = self._processes.pid(name, which)
            if pid is not None or time.monotonic() > deadline:
                return pid
            await asyncio.sleep(0.1)

    async def _deafen(self) -> bool:
        """Cut the connections on which group messages are heard: what is told until they are back is lost."""
        deadline = time.monotonic() + ABSENT
        while time.monotonic() < deadline:
            with contextlib.suppress(RedisError, OSError):
                async with self._processes.redis() as client:
                    if await client.client_kill_filter(_type="pubsub"):
                        return True
            await asyncio.sleep(0.1)
        return False

    async def _wake(self, pid: int, after: float) -> None:
        try:
            await asyncio.sleep(after)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    async def _lock_database(self, seconds: float) -> None:
        """Hold the lock that every write needs, as a backup or another program would."""
        await asyncio.to_thread(self._hold_lock, seconds)

    def _hold_lock(self, seconds: float) -> None:
        path = self._processes.stack.data_dir / "db.sqlite3"
        with contextlib.closing(sqlite3.connect(path, timeout=20, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            connection.execute("ROLLBACK")


def _between(bounds: tuple[float, float], share: float) -> float:
    return bounds[0] + share * (bounds[1] - bounds[0])
