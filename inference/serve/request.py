"""An HTTP request as it comes in, before an application sees any of it."""

from __future__ import annotations

import json
from typing import Any

from daphne.http_protocol import WebRequest

from inference.http import JSON, MAX_BODY, SAFE
from inference.wire.errors import RequestError
from inference.wire.openai import error_body

MOST = 2 * MAX_BODY  # bytes of a body; up to here it is taken, so that its refusal can be heard
# daphne reads these, whoever sends them: below which path the server is, and the subprotocols of a WebSocket,
# of which we have none.
UNHEARD = (b"Daphne-Root-Path", b"Sec-WebSocket-Protocol")
TOO_LARGE = b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Request(WebRequest):  # type: ignore[misc]
    """daphne's, but for a body without end, which is cut off, and for what daphne itself has to refuse."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        # Nobody here reads the forms that Twisted would parse: Django parses its own.
        super().__init__(*arguments, parsePOSTFormSubmission=False, **more)
        self._taken = 0

    def process(self) -> Any:
        for name in UNHEARD:
            self.requestHeaders.removeHeader(name)
        return super().process()

    def handleContentChunk(self, data: bytes) -> None:
        self._taken += len(data)
        if self._taken <= MOST:
            super().handleContentChunk(data)
        elif self._taken - len(data) <= MOST:  # once
            self.channel.transport.write(TOO_LARGE)
            self.channel.loseConnection()

    def basic_error(self, status: int, status_text: bytes, body: str) -> None:
        data = json.dumps(error_body(RequestError(status, "", f"{body}."))).encode()
        headers = [(b"content-type", JSON), (b"content-length", str(len(data)).encode()), *SAFE]
        self.handle_reply({"type": "http.response.start", "status": status, "headers": headers})
        self.handle_reply({"type": "http.response.body", "body": data})
