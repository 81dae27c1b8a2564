"""`manage.py serve`: checks, then Redis, worker and web as children, kept alive and stopped together."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
from dataclasses import replace
from pathlib import Path

import redis
import redis.asyncio

from inference.broker.connect import redis_url
from inference.options import Options

from . import CannotStart, checks, database, embedded_redis, full_disk, model_files, surroundings
from .child import Child

MANAGE = Path(__file__).resolve().parent.parent.parent / "manage.py"
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# By when each is gone: seconds after the wish to stop and the time that open streams have.
STOP_STEPS = (("web", 0.8), ("worker", 2.1), ("redis", 2.8))
POLL = 0.05  # seconds


def run(options: Options) -> int:
    """Serve until SIGTERM, SIGINT or SIGHUP; the exit code. Raises CannotStart."""
    surroundings.allow_many_files()
    checks.port(options.host, options.port)
    lock = checks.lock(options.data_dir)
    try:
        if not (options.is_loopback or options.api_keys or options.allow_anonymous or database.has_api_key()):
            what = "a server behind a proxy" if options.tls_proxy else options.host
            raise CannotStart(
                f"{what} can be reached by others and no API key exists; give one with --api-key, "
                "make one with manage.py create_api_key, or say --allow-anonymous"
            )
        model = model_files.resolve(options)
        checks.memory(options, model)
        checks.given_redis()
        return asyncio.run(_supervise(replace(options, model=str(model))))
    finally:
        os.close(lock)


async def _supervise(options: Options) -> int:
    return await Supervisor(options).run()


class Supervisor:
    """The children of one server and the order in which they come and go. Made inside the event loop."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._url = f"http://{_reachable(options.host)}:{options.port}"
        self._children: dict[str, Child] = {}
        # Done at a signal; failed when a child gives up.
        self._fate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._password: str | None = None  # of the admin, as long as it was not shown
        self._needs_key = False
        self._disk: asyncio.Task[None] | None = None
        self._env = {
            "BERTH_WORKER_ID": f"{socket.gethostname()}-{options.port}",
            **os.environ,
            "BERTH_OPTIONS": options.to_json(),
            "PYTHONUNBUFFERED": "1",
            "PYTHONIOENCODING": "utf-8:backslashreplace",  # as `Child` reads it, whatever the terminal is
        }

    async def run(self) -> int:
        """Start everything, wait for a signal, stop everything: 0. Raises CannotStart."""
        for number in SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal, number)
        preparing = asyncio.create_task(self._prepare_database())
        starting = asyncio.create_task(self._start(preparing))
        try:
            await asyncio.wait([starting, self._fate], return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
            await self._fate
        finally:
            starting.cancel()
            await self._stop()
            await asyncio.wait([starting, preparing], timeout=1)
            if preparing.done():
                preparing.exception()  # asked for, since one reason why it cannot start is enough
            if self._password:
                print(f"The admin's name is {database.ADMIN}, the password {self._password}", flush=True)
        return 0

    def _on_signal(self, number: int) -> None:
        if not self._fate.done():
            self._fate.set_result(None)
        elif number == signal.SIGINT:  # impatience; a second SIGTERM is only a process group's echo
            for child in self._children.values():
                child.kill()
            os._exit(130)

    # --- beginnings -----------------------------------------------------------------------------------

    async def _start(self, preparing: asyncio.Task[None]) -> None:
        await self._start_redis()
        crash = f"the model {self._options.model} is corrupt: llama.cpp crashes as it loads it"
        worker = [sys.executable, str(MANAGE), "worker"]  # it needs no database
        self._launch("worker", worker, ready=r"\bready: ", crash=crash)
        await asyncio.shield(preparing)
        self._launch("web", [sys.executable, str(MANAGE), "web"])
        await self._until_healthy()
        self._welcome()

    async def _prepare_database(self) -> None:
        self._password, has_keys = await asyncio.to_thread(database.prepare)
        self._needs_key = bool(self._options.api_keys) or has_keys

    async def _start_redis(self) -> None:
        """The embedded server, unless another is given, and it answers."""
        if os.environ.get("REDIS_URL"):
            return
        command, _ = embedded_redis.prepare(self._options.data_dir)
        self._launch("redis", command, embedded_redis.CHATTER)
        async with redis.asyncio.Redis.from_url(redis_url(), socket_timeout=2) as client:
            while True:
                try:
                    await client.ping()
                    break
                except (redis.RedisError, OSError) as error:
                    if (child := self._children["redis"]).deaths:
                        raise CannotStart(f"the embedded Redis does not start: {child.last_line}") from error
                await asyncio.sleep(POLL)
        self._disk = asyncio.create_task(full_disk.watch(self._options.data_dir))

    def _launch(self, name: str, command: list[str], hide: str = "", **about: str) -> None:
        child = self._children[name] = Child(name, command, self._env, hide, **about)
        child.start().add_done_callback(self._on_end)

    def _on_end(self, keeper: asyncio.Task[None]) -> None:
        if not keeper.cancelled() and (error := keeper.exception()) and not self._fate.done():
            self._fate.set_exception(error)

    async def _until_healthy(self) -> None:
        while not await self._is_healthy():  # noqa: ASYNC110 - another process's state
            await asyncio.sleep(POLL)

    async def _is_healthy(self) -> bool:
        """Whether GET /health says 200."""
        writer = None
        try:
            async with asyncio.timeout(5):
                host = _reachable(self._options.host).strip("[]")
                reader, writer = await asyncio.open_connection(host, self._options.port)
                writer.write(b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n")
                return b" 200 " in await reader.readline()
        except (OSError, TimeoutError):
            return False
        finally:
            if writer is not None:
                writer.close()

    def _welcome(self) -> None:
        key = "-H 'Authorization: Bearer YOUR_KEY' " if self._needs_key else ""
        body = '{"messages": [{"role": "user", "content": "Hello!"}], "stream": true}'
        if self._password:
            sign_in = f"{database.ADMIN}, password {self._password} (shown only this once)"
            self._password = None
        else:
            sign_in = f"{database.ADMIN} (manage.py changepassword {database.ADMIN} sets a new password)"
        print(
            "\nBerth is ready.\n"
            f"  Chat     {self._url}/\n"
            f"  Monitor  {self._url}/monitor/\n"
            f"  Admin    {self._url}/admin/\n"
            f"  API      {self._url}/v1\n"
            f"  Sign in  {sign_in}\n"
            f"  Try it   curl -N {self._url}/v1/chat/completions {key}-H 'Content-Type: application/json' "
            f"-d '{body}'\n",
            flush=True,
        )

    # --- ends -----------------------------------------------------------------------------------------

    async def _stop(self) -> None:
        """Who asks goes before who answers; whatever is left after the last step is killed."""
        if self._disk is not None:
            self._disk.cancel()
        began = time.monotonic()
        for name, end in STOP_STEPS:
            if child := self._children.get(name):
                await child.terminate(max(0.0, began + self._options.drain + end - time.monotonic()))
        for child in self._children.values():
            child.kill()


def _reachable(host: str) -> str:
    """The host as a URL has it; this machine's loopback for one that means every address."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host.strip("[]"), host.strip("[]"))
    return f"[{host}]" if ":" in host else host
