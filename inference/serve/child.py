"""One child of the supervisor: started, its output shown line by line, started again when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import CannotStart

TIED = Path(__file__).with_name("tied.py")
GIVES_UP = 78  # the exit code of a child that said in its last line why a restart would not help
WRONG_CPU = (
    "was stopped by the CPU at an instruction that it does not have: llama.cpp was built for another "
    "machine, or by a faulty compiler; remove .venv, run `pip cache remove llama_cpp_python`, then make again"
)
FIRST_DELAY, LONGEST_DELAY = 0.5, 10.0  # seconds between a death and the next start
LONG_LIFE = 60.0  # seconds after which a death counts as the first one
LONGEST_LINE = 1 << 20  # bytes
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE)


def say(prefix: str, line: str) -> None:
    """One line of output. A reader that went away stops nothing."""
    with contextlib.suppress(OSError):
        sys.stdout.write(f"[{prefix}] {line}\n")
        sys.stdout.flush()


class Child:
    """A process group of its own that does not outlive this process, however this process ends.

    Lines of its output in which the pattern `hide` is found are not shown. One that crashes before it has
    said a line with the pattern `ready` would crash again: it gives up, for the reason `crash`.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str],
        hide: str = "",
        ready: str = "",
        crash: str = "",
    ) -> None:
        self.name = name
        self.last_line = ""
        self.deaths = 0
        self._stopping = False
        self._command = [sys.executable, "-I", "-S", str(TIED), str(os.getpid()), *command]
        self._env = env
        self._hidden = re.compile(hide or r"(?!)")
        self._ready, self._crash = re.compile(ready), crash
        self._was_ready = False
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    def start(self) -> asyncio.Task[None]:
        """Start it, again and again until `terminate`; the task ends with CannotStart if it gives up."""
        self._keeper = asyncio.create_task(self._keep())
        return self._keeper

    async def _keep(self) -> None:
        delay = FIRST_DELAY
        while not self._stopping:
            began = time.monotonic()
            code = await self._live()
            if self._stopping:
                return
            self.deaths += 1
            if code == GIVES_UP:
                reason = self.last_line.removeprefix(f"manage.py {self.name}: ")
                raise CannotStart(reason or f"the {self.name} cannot start")
            if code == -signal.SIGILL:
                raise CannotStart(f"the {self.name} {WRONG_CPU}")
            if self._crash and not self._was_ready and -code in CRASHES:
                raise CannotStart(f"{self._crash} ({signal.Signals(-code).name})")
            if time.monotonic() - began > LONG_LIFE:
                delay = FIRST_DELAY
            how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
            say("serve", f"{self.name} {how}; it is started again in {delay:g} s")
            await asyncio.sleep(delay)
            delay = min(2 * delay, LONGEST_DELAY)

    async def _live(self) -> int:
        """One life: the exit code, a signal's number negative."""
        self._was_ready = False
        process = await asyncio.create_subprocess_exec(
            *self._command,
            env=self._env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            process_group=0,
            limit=LONGEST_LINE,
        )
        self._process = process
        assert process.stdout is not None
        relay = asyncio.create_task(self._relay(process.stdout))
        code = await process.wait()
        self.kill()  # what it may have started itself
        await asyncio.wait([relay], timeout=1)
        relay.cancel()
        return code

    async def _relay(self, output: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await output.readline()
            except ValueError:  # a line without end: its beginning was thrown away
                continue
            if not line:
                return
            self.last_line = line.decode(errors="replace").rstrip()
            self._was_ready = self._was_ready or bool(self._ready.search(self.last_line))
            if not self._hidden.search(self.last_line):
                say(self.name, self.last_line)

    async def terminate(self, patience: float) -> None:
        """Ask it to end and wait that many seconds at most; it is not started again."""
        self._stopping = True
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await self._process.wait()
        if self._keeper is not None:
            if self._process is None or self._process.returncode is None:
                self._keeper.cancel()
            await asyncio.wait([self._keeper], timeout=0.2)  # its last lines are shown
            self._keeper.cancel()

    def kill(self) -> None:
        """Kill its whole process group at once."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
