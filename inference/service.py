"""What the service tells of itself: its health, its models, its slots and its figures.

All of it is read from the workers' live snapshots, so that it answers while the workers are busy. What an
operator does with a slot is for its worker to do.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from channels.db import database_sync_to_async

from inference import by_hand, drain
from inference.auth import authenticate
from inference.broker import occupancy
from inference.broker.connect import AWAY
from inference.consumers import defaults, options
from inference.http import StreamConsumer
from inference.options import VERSION
from inference.wire import absent, llamacpp, metrics, openai, openapi, status
from inference.wire.errors import RequestError


class Info(StreamConsumer):
    """A GET of the service's state."""

    methods: tuple[str, ...] = ("GET",)
    is_public = False

    def error_body(self, error: RequestError) -> dict[str, Any]:
        return llamacpp.error_body(error)

    async def handle(self, body: bytes) -> None:
        if not self.is_public:
            await authenticate(self.headers, self.address)
        await self.tell()

    @abstractmethod
    async def tell(self) -> None:
        """Answer somebody who may know."""


class Health(Info):
    """GET /health, /v1/health"""

    is_public = True

    async def tell(self) -> None:
        if drain.has_begun():
            raise drain.RESTARTING
        try:
            snapshots = await occupancy.get_all()
        except AWAY:
            raise RequestError(503, "", "Redis can't be reached.") from None
        await self.send_json(*status.health(snapshots))


class Models(Info):
    """GET /v1/models, /models"""

    is_public = True

    def error_body(self, error: RequestError) -> dict[str, Any]:
        return openai.error_body(error)

    async def tell(self) -> None:
        await self.send_json(200, status.models(await occupancy.get_all()))


class Model(Models):
    """GET /v1/models/{id}, /models/{id}"""

    async def tell(self) -> None:
        id = self.scope["url_route"]["kwargs"]["model"]
        await self.send_json(200, status.model(await occupancy.get_all(), id))


class Slots(Info):
    """GET /slots"""

    async def tell(self) -> None:
        _check_slots_are_served()
        await self.send_json(200, status.slots(await occupancy.get_all()))


def _check_slots_are_served() -> None:
    if not options().slots:
        raise RequestError(501, "", "This server does not serve /slots. Start it with `--slots`.")


class Slot(StreamConsumer):
    """POST /slots/{id}?action=park|unpark"""

    def error_body(self, error: RequestError) -> dict[str, Any]:
        return llamacpp.error_body(error)

    async def handle(self, body: bytes) -> None:
        caller = await authenticate(self.headers, self.address)
        _check_slots_are_served()
        query = self.scope["query_string"].decode("latin-1")
        action = llamacpp.parse_slot_action(self.scope["url_route"]["kwargs"]["slot"], query)
        if caller.key_id is None and b"origin" in self.headers:
            # While the API is open, a page of any site could send this from the browser of who is here.
            caller = caller._replace(is_staff=False)
        await self.send_json(200, await _act(action, caller))


# It waits for a worker, and for the database: in a thread of its own.
_act = database_sync_to_async(by_hand.act, thread_sensitive=False)


class Props(Info):
    """GET /props"""

    async def tell(self) -> None:
        await self.send_json(200, status.props(await occupancy.get_all(), defaults(options().alias)))


class Metrics(Info):
    """GET /metrics"""

    async def tell(self) -> None:
        if not options().metrics:
            raise RequestError(501, "", "This server does not serve /metrics. Start it with `--metrics`.")
        data = metrics.metrics(await occupancy.get_all())
        await self.send_whole(200, data, metrics.CONTENT_TYPE.encode())


class OpenApi(Info):
    """GET /openapi.json"""

    is_public = True

    def error_body(self, error: RequestError) -> dict[str, Any]:
        return openai.error_body(error)

    async def tell(self) -> None:
        await self.send_json(200, openapi.document(VERSION))


class Unknown(Info):
    """Any other path under /v1 or /slots"""

    methods = ("GET", "POST", "PUT", "PATCH", "DELETE")
    is_public = True

    def error_body(self, error: RequestError) -> dict[str, Any]:
        return absent.error_of(self.scope["path"], error)

    async def tell(self) -> None:
        raise absent.not_found(self.scope["path"])
