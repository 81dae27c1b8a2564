"""The processes under a chaos run: the real stack, one more worker, and who is who by number."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import redis.asyncio

from inference.broker.keys import snapshot
from tests.e2e.stack import ROOT, Stack

TIED = (sys.executable, str(ROOT / "inference/serve/tied.py"), str(os.getpid()))
SECOND = "second"  # the id of the other worker
RESTART = 0.5  # seconds between its death and its next start


class Processes:
    """`manage.py serve`, and beside it another worker where two are wanted."""

    def __init__(self, stack: Stack, workers: int) -> None:
        self.stack, self.workers = stack, workers
        self._second: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._has_shown = False

    async def start(self) -> None:
        """Returns when everything is ready. Raises RuntimeError."""
        await asyncio.to_thread(self.stack.start)
        if self.workers > 1:
            self._keeper = asyncio.create_task(self._keep())
            async with self.redis() as client:
                while not await client.exists(snapshot(SECOND)):  # noqa: ASYNC110 - another process's state
                    await asyncio.sleep(0.1)

    async def _keep(self) -> None:
        """Start the second worker, again and again, as `serve` does with the first."""
        command = [*TIED, sys.executable, str(ROOT / "manage.py"), "worker", *self.stack.flags]
        environ = {**self.stack.environ(), "BERTH_WORKER_ID": SECOND}
        with (self.stack.data_dir / "second.log").open("ab") as log:
            while True:
                self._second = await asyncio.create_subprocess_exec(
                    *command, cwd=ROOT, stdout=log, stderr=log, env=environ, start_new_session=True
                )
                await self._second.wait()
                log.write(f"ended with code {self._second.returncode}\n".encode())
                log.flush()
                await asyncio.sleep(RESTART)

    async def stop(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait([self._keeper])
        if self._second is not None and self._second.returncode is None:
            self._second.terminate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(10):
                    await self._second.wait()
            with contextlib.suppress(ProcessLookupError):
                self._second.kill()
        await asyncio.to_thread(self.stack.stop)

    def show_stacks(self) -> None:
        """Have workers and web write what they are doing into their logs; once."""
        if not self._has_shown:
            self._has_shown = True
            for pid in (self.pid("web"), *(self.pid("worker", which) for which in range(self.workers))):
                if pid is not None:
                    os.kill(pid, signal.SIGUSR1)

    def redis(self) -> redis.asyncio.Redis:
        """A client of the stack's Redis."""
        address = self.stack.data_dir / "redis.url"
        url = address.read_text().strip() if address.exists() else f"unix://{self.stack.data_dir}/redis.sock"
        return redis.asyncio.Redis.from_url(url)

    def pid(self, name: str, which: int = 0) -> int | None:
        """The process number of web, redis or a worker; None while it is away."""
        if name == "worker" and self.workers > 1 and which % 2:
            second = self._second
            return second.pid if second is not None and second.returncode is None else None
        serve = self.stack.process.pid
        for pid in Path(f"/proc/{serve}/task/{serve}/children").read_text().split():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                if name in words or (name == "redis" and "valkey-server" in words[0]):
                    return int(pid)
        return None
