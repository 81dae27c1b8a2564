"""`manage.py` as a person runs it: a command to its end, and a server that stays."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 180.0  # seconds after which a test gives up


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def manage(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT, env={**os.environ, **environ}, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip


class Served:
    """A server of its own port, ready when it is made. `lines` is what it has said so far."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir, self.port = data_dir, free_port()
        self.lines: list[str] = []
        flags = [
            "--port",
            str(self.port),
            "--data-dir",
            str(data_dir),
            "--ctx-size",
            "256",
            "--parallel",
            "1",
        ]
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", *flags],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self._unread = ""
        self.read_until("Try it")

    def read_until(self, text: str) -> None:
        """Read what it says until a line has that text. AssertionError when it ends before."""
        assert self.process.stdout is not None
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
            chunk = os.read(self.process.stdout.fileno(), 1 << 16).decode() if ready else ""
            assert chunk, f"no '{text}' in what serve said:\n" + "\n".join(self.lines)
            *lines, self._unread = (self._unread + chunk).split("\n")
            self.lines += lines
            if any(text in line for line in lines):
                return

    def children(self) -> dict[str, int]:
        """The children by name, with their process ids."""
        found = {}
        for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            with contextlib.suppress(OSError):  # it is gone by now
                command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                if command[0]:  # it has not ended
                    found["redis" if "valkey-server" in command[0] else command[-2]] = int(pid)
        return found

    def is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=PATIENCE) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    def until(self, condition: Callable[[], bool]) -> None:
        """Ask again and again, as long as it lives and patience lasts."""
        death, give_up = os.pidfd_open(self.process.pid), time.monotonic() + PATIENCE
        try:
            while not condition():
                assert not select.select([death], [], [], 0.05)[0], "serve ended"
                assert time.monotonic() < give_up
        finally:
            os.close(death)

    def end(self, number: int) -> tuple[int, str]:
        """Send a signal and wait for the end: the exit code, and the rest of what it said."""
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, rest


class Watch:
    """Processes whose end can be waited for although they are nobody's children any more."""

    def __init__(self, pids: dict[str, int]) -> None:
        assert set(pids) == {"redis", "worker", "web"}
        self._handles = {os.pidfd_open(pid): name for name, pid in pids.items()}

    def alive(self) -> list[str]:
        """Those that are there still after all the time that there is."""
        left = dict(self._handles)
        while left and (ended := select.select(list(left), [], [], PATIENCE)[0]):
            for handle in ended:
                os.close(handle)
                del left[handle]
        return list(left.values())


def refused(*flags: str, code: int = 78, **environ: str) -> str:
    """The one line with which serve ends."""
    done = manage("serve", *flags, **environ)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.strip().removeprefix("manage.py serve: ")
