"""The web process: daphne with Berth's application, and the recorder's thread."""

from __future__ import annotations

import os
import sys
from typing import Any

import daphne.server  # before anything that could install another reactor
from daphne import http_protocol
from twisted.internet import defer, reactor

from inference.options import Options

from . import checks

STOP_PATIENCE = 1.0  # seconds that open streams have to end


class Request(http_protocol.WebRequest):  # type: ignore[misc]
    """daphne's, which would keep all that is sent: of a body that is too large, as much as tells so."""

    most = 0  # bytes

    def handleContentChunk(self, data: bytes) -> None:
        super().handleContentChunk(data[: max(0, self.most + 1 - self.content.tell())])


class Server(daphne.server.Server):  # type: ignore[misc]
    """daphne, which says in one line why it cannot listen and never waits long at its end."""

    why_not: str | None = None

    def listen_error(self, failure: Any) -> None:
        options = Options.from_env()
        error = getattr(failure.value, "socketError", failure.value)
        self.why_not = checks.cannot_listen(options.host, options.port, error)
        self.stop()

    def kill_all_applications(self) -> defer.Deferred[None]:
        """Cancel every open request and wait until all are gone, or until patience ends."""
        running = [
            task
            for c in self.connections.values()
            if (task := c.get("application_instance")) and not task.done()
        ]
        gone: defer.Deferred[None] = defer.Deferred()

        def look(left: float) -> None:
            if left <= 0 or all(task.done() for task in running):
                gone.callback(None)
            else:
                reactor.callLater(0.02, look, left - 0.02)

        for task in running:
            task.cancel()
        look(STOP_PATIENCE)
        return gone


def run(options: Options) -> int:
    """Serve until SIGTERM or SIGINT; the exit code."""
    from inference.recorder import start_thread
    from project.asgi import application

    start_thread()
    Request.most = options.max_body << 20
    http_protocol.WebRequest = Request  # which its factory makes of each request
    interface = options.host.strip("[]").replace(":", r"\:")
    server = Server(
        application,
        endpoints=[f"tcp:port={options.port}:interface={interface}"],
        server_name="",
        verbosity=0,
    )
    server.run()
    if server.why_not:
        print(server.why_not, file=sys.stderr, flush=True)
        return 1
    sys.stdout.flush()
    # Not sys.exit: a thread that waits for the database or Redis must not hold up the end.
    os._exit(0)
