"""The web process: daphne with Berth's application, and the threads beside it."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import sys
import time
from typing import Any

import daphne.server  # before anything that could install another reactor
from daphne import http_protocol
from daphne.ws_protocol import WebSocketProtocol
from twisted.internet import defer

from inference import drain
from inference.options import Options

from . import checks, surroundings
from .connection import Connection

logger = logging.getLogger(__name__)

STOP_PATIENCE = 0.5  # seconds that what is cut off has to end
LOOK_EVERY = 0.02  # seconds, at a stop
GOING_AWAY = 1012  # the close code of a WebSocket whose server restarts


class Server(daphne.server.Server):  # type: ignore[misc]
    """daphne, which says in one line why it cannot listen, holds little for a client that does not read, and
    lets open streams come to their end when it is told to stop."""

    why_not: str | None = None

    def __init__(self, *arguments: Any, drain_s: float, send_timeout: float, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._drain_s, self._send_timeout = drain_s, send_timeout
        self._ports: list[Any] = []
        self._seen: dict[Connection, tuple[int, float]] = {}  # of those who lag: bytes taken, and since when

    def run(self) -> None:
        from inference.serve.request import Request  # which needs the settings

        http_protocol.WebRequest = Request  # of which daphne's factory makes one a request
        super().run()

    def listen_success(self, port: Any) -> None:
        port.transport = Connection
        self._ports.append(port)

    def listen_error(self, failure: Any) -> None:
        options = Options.from_env()
        error = getattr(failure.value, "socketError", failure.value)
        self.why_not = checks.cannot_listen(options.host, options.port, error)
        self.stop()

    # --- clients that do not read -----------------------------------------------------------------

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Send, and return once the client is not far behind."""
        await super().handle_reply(protocol, message)
        connection = protocol.transport
        if isinstance(connection, Connection):
            await connection.has_room()

    def timeout_checker(self) -> None:
        """Every two seconds."""
        if self._send_timeout > 0:
            self._cut_off_idle_readers()
        super().timeout_checker()

    def _cut_off_idle_readers(self) -> None:
        now, seen = time.monotonic(), self._seen
        self._seen = {}
        for connection in self.open_connections():
            if not connection.is_waited_for:
                continue
            taken, since = seen.get(connection, (-1, now))
            if taken != connection.taken:
                taken, since = connection.taken, now
            self._seen[connection] = taken, since
            if now - since > self._send_timeout:
                logger.warning(
                    "%s has read nothing for %d s and is cut off", connection.getPeer(), now - since
                )
                connection.abortConnection()

    def open_connections(self) -> set[Connection]:
        """Those with a request under way, or a WebSocket."""
        found = (protocol.transport for protocol in self.connections)
        return {transport for transport in found if isinstance(transport, Connection)}

    # --- the end ----------------------------------------------------------------------------------

    def kill_all_applications(self) -> defer.Deferred[None]:
        """Take nothing new and let requests come to their end; what is left after some time is cut off."""
        return defer.Deferred.fromFuture(asyncio.ensure_future(self._drain()))

    async def _drain(self) -> None:
        drain.begin()
        for port in self._ports:
            port.stopListening()
        for protocol in list(self.connections):
            if isinstance(protocol, WebSocketProtocol) and protocol.state == protocol.STATE_OPEN:
                protocol.sendClose(code=GOING_AWAY)
        for task in self._running():
            if not drain.is_waited_for(task):
                task.cancel()
        await self._until_idle(self._drain_s)
        drain.end()
        for task in self._running():
            task.cancel()
        await self._until_idle(STOP_PATIENCE)

    async def _until_idle(self, seconds: float) -> None:
        """Wait until every request is answered and its answer sent, so long at most."""
        end = time.monotonic() + seconds
        while self._running() or any(connection.unsent for connection in self.open_connections()):
            if time.monotonic() > end:
                return
            await asyncio.sleep(LOOK_EVERY)

    def _running(self) -> list[asyncio.Task[Any]]:
        tasks = [details.get("application_instance") for details in self.connections.values()]
        return [task for task in tasks if task is not None and not task.done()]


def run(options: Options) -> int:
    """Serve until SIGTERM or SIGINT; the exit code."""
    from project.asgi import application
    from project.threads import start_threads

    surroundings.allow_many_files()
    start_threads()
    # Every stream waits while another thread, such as the recorder's, keeps the GIL, and while what has been
    # imported is searched for garbage.
    sys.setswitchinterval(0.0005)
    gc.collect()
    gc.freeze()
    interface = options.host.strip("[]").replace(":", r"\:")
    server = Server(
        application,
        endpoints=[f"tcp:port={options.port}:interface={interface}"],
        server_name="",
        verbosity=0,
        drain_s=options.drain,
        send_timeout=options.send_timeout,
    )
    server.run()
    if server.why_not:
        print(server.why_not, file=sys.stderr, flush=True)
        return 1
    sys.stdout.flush()
    # Not sys.exit: a thread that waits for the database or Redis must not hold up the end.
    os._exit(0)
