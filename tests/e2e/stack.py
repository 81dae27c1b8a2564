"""The real stack, started as a person starts it, and a real browser."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import redis
from playwright.sync_api import Browser, Page, Playwright

from inference.broker.control import Command
from inference.broker.keys import CONTROL, snapshot
from tests.served import ROOT as ROOT
from tests.served import free_port as free_port

PASSWORD = "correct-horse-battery"
PEOPLE = {"ada": True, "grace": False, "eve": True}  # name -> is staff
ONLOOKER = "eve"  # staff who may look, and no more
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
FURNISH = """
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connections
call_command("migrate", interactive=False, verbosity=0)
for name, staff in {people!r}.items():
    user, _ = User.objects.get_or_create(username=name, defaults=dict(is_staff=staff, is_superuser=staff))
    user.is_superuser = staff and name != {onlooker!r}
    user.set_password({password!r})
    user.save()
connections.close_all()
"""
DATABASE = "db.sqlite3"
# Of a page, once nothing of what has come is still to be drawn.
IS_DRAWN = "async () => (await import('/static/dashboard/pace.js')).isIdle()"


@cache
def furnished() -> Path:
    """A database with PEOPLE in it, made once for all stacks."""
    folder = Path(tempfile.mkdtemp(prefix="berth-people-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    code = FURNISH.format(people=PEOPLE, password=PASSWORD, onlooker=ONLOOKER)
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", code]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "BERTH_DATA_DIR": str(folder)})
    return folder / DATABASE


class Stack:
    """`manage.py serve` with a data directory of its own. The model makes no titles, which would come between
    a test's generations: `--chat-titles` among the flags has it do so."""

    def __init__(self, data_dir: Path, **flags: int | float | str) -> None:
        self.data_dir, self.port = data_dir, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        flags = {"host": "127.0.0.1", "port": self.port, "data-dir": str(data_dir), **flags}
        self.flags = [part for name, value in flags.items() for part in (f"--{name}", str(value))]
        self.flags.append("--no-chat-titles")
        self.log = data_dir / "serve.log"
        self.env: dict[str, str] = {}  # more variables of its processes
        self.sessions: dict[str, list[Any]] = {}  # name -> cookies of browsers that are closed

    def start(self) -> None:
        """Returns when it can be used; raises RuntimeError with the end of its log when it can't."""
        if not (database := self.data_dir / DATABASE).exists():
            shutil.copy(furnished(), database)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "serve", *self.flags],
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environ(),
                start_new_session=True,
            )
        self.wait_until_healthy()

    def wait_until_healthy(self) -> None:
        """Raises RuntimeError with the end of its log when it does not become so."""
        for _ in range(600):
            if self._is_healthy():
                return
            try:
                self.process.wait(0.2)
            except subprocess.TimeoutExpired:
                continue
            raise RuntimeError("serve ended:\n" + self.log.read_text()[-3000:])
        self.stop()
        raise RuntimeError("serve did not become healthy:\n" + self.log.read_text()[-3000:])

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(self.url + "/health", timeout=5) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    def shell(self, code: str) -> None:
        """Run Django code on this stack's data."""
        command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", code]
        subprocess.run(command, cwd=ROOT, check=True, env=self.environ())

    def environ(self) -> dict[str, str]:
        """In which `manage.py` works on this stack's data."""
        return {**os.environ, "BERTH_DATA_DIR": str(self.data_dir), **self.env}

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    def kill(self, name: str) -> None:
        """End a child, the worker, web or redis, as if it had crashed."""
        os.kill(self.child(name), signal.SIGKILL)

    def child(self, name: str) -> int:
        """The process id of the worker, web or redis."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in children:
            with contextlib.suppress(OSError):  # it is gone by now
                command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                if name in command or (name == "redis" and "valkey-server" in command[0]):
                    return int(pid)
        raise AssertionError(f"serve has no {name}")

    def complete(self, prompt: str, n_predict: int, **fields: Any) -> ApiStream:
        """Start an API request that writes exactly `n_predict` tokens; -1: until the client leaves."""
        return ApiStream(self.url, {"prompt": prompt, "n_predict": n_predict, **fields})

    def redis(self) -> redis.Redis:
        """A client of its Redis."""
        elsewhere = self.data_dir / "redis.url"
        url = elsewhere.read_text().strip() if elsewhere.exists() else f"unix://{self.data_dir}/redis.sock"
        return redis.Redis.from_url(url)

    def cancel_all(self) -> None:
        """Have everything end that the workers show."""
        with self.redis() as client:
            for key in client.scan_iter(snapshot("*")):
                shown = json.loads(client.get(key) or "{}")
                for one in (one for place in ("slots", "parked", "queue") for one in shown.get(place, ())):
                    if one["generation"]:
                        client.xadd(CONTROL, Command("cancel", one["generation"])._asdict())


class ApiStream:
    """A streamed request to the API, read beside the browser. `with stack.complete(...) as stream:`"""

    def __init__(self, url: str, body: dict[str, Any]) -> None:
        body = {"ignore_eos": True, "temperature": 0, "stream": True, **body}
        request = urllib.request.Request(
            url + "/completion", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        self._reply = urllib.request.urlopen(request, timeout=120)
        self.last: dict[str, Any] = {}
        self._started = threading.Event()
        self._left = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._reply:
            for line in self._reply:
                if self._left:
                    return
                if line.startswith(b"data: {"):
                    self.last = json.loads(line[6:])
                    self._started.set()

    def __enter__(self) -> ApiStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Hang up, at the next line."""
        self._left = True
        self._thread.join(120)

    def wait_until_it_writes(self) -> None:
        assert self._started.wait(120)

    def result(self) -> dict[str, Any]:
        """The last chunk, when all is written."""
        self._thread.join(120)
        return self.last


def launch_chromium(playwright: Playwright) -> Browser:
    """Raises RuntimeError when Chromium is not installed."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        raise RuntimeError("the browser tests need Chromium: apt-get install chromium")
    return playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)


@contextmanager
def signed_in(browser: Browser, stack: Stack, name: str, **context: Any) -> Iterator[Page]:
    """A browser of its own in which `name` has signed in. Errors on a page's script fail the test."""
    # What a service worker answers, no test could put something else in the place of.
    context.setdefault("service_workers", "block")
    sessions = stack.sessions.setdefault(name, [])
    with browser.new_context(base_url=stack.url, **context) as opened:
        page = opened.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        if sessions:
            opened.add_cookies([sessions.pop()])
        page.goto("/")
        if "/accounts/login/" in page.url:  # the first time, or a test has signed out
            page.get_by_label("Name").fill(name)
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url(f"{stack.url}/")
        yield page
        sessions += (cookie for cookie in opened.cookies() if cookie["name"].startswith("berth_session"))
        assert not errors, errors
