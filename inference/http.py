"""HTTP for answers that take their time: the body is read, then `handle` runs until it returns or the
client leaves, whichever comes first."""

from __future__ import annotations

import asyncio
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from channels.consumer import AsyncConsumer
from django.conf import settings
from django.db import DatabaseError

from inference import drain
from inference.address import of_scope
from inference.broker.connect import AWAY
from inference.broker.control import GIVE_UP_S
from inference.broker.hub import Crowded
from inference.tasks import end
from inference.wire.errors import RequestError
from inference.wire.fields import MOST_VALUES, has_too_many_values
from inference.wire.openai import error_body

logger = logging.getLogger(__name__)

MAX_BODY: int = settings.BERTH.max_body << 20  # bytes
LONG_BODY = 1 << 16  # bytes
RETRY_AFTER = {429: b"2", 503: b"5"}  # seconds
JSON = b"application/json; charset=utf-8"
EVENT_STREAM = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
SAFE = (  # an answer is data, never a page
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)

Header = tuple[bytes, bytes]
Message = dict[str, Any]
Parsed = TypeVar("Parsed")
_reader = ThreadPoolExecutor(1, "bodies")


class StreamConsumer(AsyncConsumer, ABC):  # type: ignore[misc]
    """One request. A subclass implements `handle`, and frees what it holds in a `finally` there: when the
    client leaves, `handle` is cancelled.

    It subscribes to no channel: events reach a request through the broker's hub.
    """

    methods: tuple[str, ...] = ("POST",)
    comes_back = False  # its client comes again by itself when the server has restarted
    scope: dict[str, Any]

    @abstractmethod
    async def handle(self, body: bytes) -> None:
        """Answer the request. RequestError becomes its JSON error as long as no stream is open."""

    def error_body(self, error: RequestError) -> dict[str, Any]:
        """The JSON of an error; OpenAI's shape unless a subclass has another."""
        return error_body(error)

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        self.scope, self._send = scope, send
        self.arrived = asyncio.get_running_loop().time()
        self.headers: dict[bytes, bytes] = {name.lower(): value for name, value in scope["headers"]}
        self.is_open = False
        if self.comes_back:
            drain.do_not_wait_for(asyncio.current_task())
        tasks: list[asyncio.Task[Any]] = []
        try:
            body = await self._body(receive)
            tasks = [asyncio.create_task(self._answer(body)), asyncio.create_task(_left(receive))]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        except ClientLeft:
            pass
        except asyncio.CancelledError:
            if not drain.has_begun():
                raise
            await self._cut_off()
        finally:
            await end(tasks, 2 * GIVE_UP_S)  # a second cancellation would cut the first one's work short

    async def _body(self, receive: Callable[[], Awaitable[Message]]) -> bytes | None:
        """The whole body; None when it is longer than MAX_BODY."""
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > MAX_BODY:
                return None
            if not message.get("more_body"):
                return b"".join(parts)

    async def _answer(self, body: bytes | None) -> None:
        try:
            method = self.scope["method"]
            if method == "OPTIONS":
                await self._preflight()
            elif method not in self.methods and not (method == "HEAD" and "GET" in self.methods):
                allow = ", ".join((*self.methods, "OPTIONS")).encode()
                error = RequestError(
                    405, "", f"{method} is not allowed here; use {' or '.join(self.methods)}."
                )
                await self.send_error(error, [(b"allow", allow)])
            elif body is None:
                raise RequestError(413, "", f"The request body is larger than {MAX_BODY >> 20} MiB.")
            else:
                await self.handle(body)
        except RequestError as error:
            await self.send_error(error)
        except AWAY as error:
            logger.warning("Redis failed %s: %s", self.scope["path"], error)
            await self.send_error(
                RequestError(503, "", "The queue of requests can't be reached. Try again soon.")
            )
        except DatabaseError as error:
            logger.warning("The database failed %s: %s", self.scope["path"], error)
            await self.send_error(RequestError(503, "", "The database can't be reached. Try again soon."))
        except Crowded:
            await self.send_error(RequestError(429, "", "Too many follow this answer already."))
        except Exception:
            logger.exception("%s failed", self.scope["path"])
            await self.send_error(RequestError(500, "", "Something broke here; it was not your request."))
        if self.is_open:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _cut_off(self) -> None:
        """The process ends, and this is still open."""
        await self.send_error(drain.CUT_OFF if self.is_open else drain.RESTARTING)
        if self.is_open:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    # --- for subclasses ---------------------------------------------------------------------------

    @property
    def address(self) -> str:
        """Who the request comes from."""
        return of_scope(self.scope)

    async def read(self, body: bytes, parse: Callable[[Any], Parsed]) -> Parsed:
        """What `parse` makes of the body's JSON. Long ones are read in a thread, one at a time, and nobody
        else waits. Raises RequestError."""
        if len(body) < LONG_BODY:
            return parse(self.json(body))
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_reader, lambda: parse(self.json(body)))

    def json(self, body: bytes) -> Any:
        """The body as JSON, whatever its content type says; raises RequestError (400, 413, 415)."""
        encoding = self.headers.get(b"content-encoding", b"").strip().lower()
        if encoding not in (b"", b"identity"):
            raise RequestError(415, "", "The request body is compressed. Send it without a Content-Encoding.")
        if has_too_many_values(body):
            raise RequestError(413, "", f"The request body lists more than {MOST_VALUES} values.")
        try:
            return json.loads(body.decode("utf-8-sig"), parse_constant=_no_number)
        except UnicodeDecodeError:
            raise RequestError(400, "", "The request body is not UTF-8.") from None
        except RecursionError:
            raise RequestError(400, "", "The request body is nested too deeply.") from None
        except ValueError as error:
            raise RequestError(400, "", f"The request body is not JSON: {error}.") from None

    async def send_json(self, status: int, obj: Any, headers: Iterable[Header] = ()) -> None:
        """The whole answer."""
        data = json.dumps(obj, ensure_ascii=False, separators=(",", ":")).encode()
        await self.send_whole(status, data, JSON, headers)

    async def send_whole(
        self, status: int, data: bytes, content_type: bytes, headers: Iterable[Header] = ()
    ) -> None:
        """The whole answer, of any type."""
        length = str(len(data)).encode()
        await self._start(status, [(b"content-type", content_type), (b"content-length", length), *headers])
        body = b"" if self.scope["method"] == "HEAD" else data
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def send_nothing(self) -> None:
        """204, the whole answer."""
        await self._start(204, [])
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def send_error(self, error: RequestError, headers: Iterable[Header] = ()) -> None:
        """An error as the whole answer, or, in an open stream, what `stream_error` makes of it."""
        if self.is_open:
            await self.send(self.stream_error(error))
            return
        if error.status == 401:
            headers = [*headers, (b"www-authenticate", b"Bearer")]
        elif error.status in RETRY_AFTER:
            headers = [*headers, (b"retry-after", RETRY_AFTER[error.status])]
        await self.send_json(error.status, self.error_body(error), headers)

    def stream_error(self, error: RequestError) -> bytes:
        """An error inside an open stream."""
        return f"data: {json.dumps(self.error_body(error))}\n\n".encode()

    async def open_stream(self) -> None:
        """Send the status 200 and the headers of an event stream."""
        await self._start(200, EVENT_STREAM)
        self.is_open = True

    async def send(self, data: bytes) -> None:
        """Send bytes of the stream, opening it first if need be."""
        if not self.is_open:
            await self.open_stream()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    # --- cross-origin -----------------------------------------------------------------------------

    async def _start(self, status: int, headers: Iterable[Header]) -> None:
        headers = [*headers, *SAFE, *self._cors()]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    def _cors(self) -> list[Header]:
        """Pages of other origins may call the API: it is opened by a key, never by a cookie."""
        origin = self.headers.get(b"origin")
        return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")] if origin else []

    async def _preflight(self) -> None:
        methods = ", ".join((*self.methods, "OPTIONS")).encode()
        allowed = [(b"access-control-allow-methods", methods), (b"access-control-allow-headers", b"*")]
        if wanted := self.headers.get(b"access-control-request-headers"):
            allowed[1] = (b"access-control-allow-headers", wanted)  # * does not cover Authorization
        await self._start(204, [*allowed, (b"access-control-max-age", b"86400")])
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


class ClientLeft(Exception):
    """Before the whole body had come."""


async def _left(receive: Callable[[], Awaitable[Message]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
