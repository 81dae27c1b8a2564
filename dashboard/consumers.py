"""What the pages follow: a generation's events, and the occupancy of the workers."""

from __future__ import annotations

import asyncio
import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Literal
from urllib.parse import parse_qs

from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.contrib.auth.models import User

from inference.broker import control, people
from inference.broker.connect import AWAY
from inference.http import Header, StreamConsumer
from inference.models import Generation
from inference.revocation import Revoked, as_long_as, of_session
from inference.wire.errors import RequestError

from . import events, live, stream
from .feed import AT_LEAST_S as APART_S
from .feed import Feed
from .language import speaking

SIGNED_OUT = 4401  # its session has ended; the browser comes again, perhaps with another
NOT_ALLOWED = 4403  # trying again would not help
NO_REDIS = 1011
NO_JSON = 1003
AT_LEAST_S = 0.25  # between two updates
AT_MOST_S = 2.0  # so that a worker which has gone is seen to be gone


class GenerationEvents(StreamConsumer):
    """One generation of one's own chats as server-sent events. Leaving does not end the generation."""

    methods = ("GET",)
    comes_back = True

    async def handle(self, body: bytes) -> None:
        user, pk = self.scope["user"], self.scope["url_route"]["kwargs"]["pk"]
        generation = await stream.find(pk, user) if user.is_authenticated else None
        if generation is None:
            raise RequestError(404, "", "There is no such generation among your chats.")
        try:
            with speaking(self.scope):
                async with as_long_as(of_session(self.scope)):
                    await self._follow(generation, user)
        except Revoked as revoked:
            if not revoked.signed_out:
                await control.cancel(generation.id.hex)  # nobody may read it any more
            raise

    async def _follow(self, generation: Generation, user: User) -> None:
        after = events.number(generation.id.hex, self.headers.get(b"last-event-id") or self._given())
        async with aclosing(stream.follow(generation, user, after)) as chunks:
            async for chunk in chunks:
                await self.send(chunk)

    def _given(self) -> bytes:
        """The id in the URL, of a page that follows with a new EventSource: that sends no header at first."""
        query: bytes = self.scope["query_string"]
        return parse_qs(query).get(b"after", [b""])[0]

    def stream_error(self, error: RequestError) -> bytes:
        return b""  # the stream ends without its last event, so the browser comes again

    def _cors(self) -> list[Header]:
        return []  # a cookie opens this, so it is for our own pages


class _Told(AsyncJsonWebsocketConsumer, ABC):  # type: ignore[misc]
    """An open page that is told of something, as long as its session may see it.

    What it hears only says that there is news; what is sent is read at that moment, however often it heard.
    What is no JSON comes from no page of ours, and ends it. What tells it ends with it, also where a group
    message cannot be read.
    """

    kind: Literal["user", "staff"]  # who may see it
    telling: asyncio.Task[None] | None = None

    async def __call__(self, *arguments: Any) -> None:
        try:
            await super().__call__(*arguments)
        finally:
            if self.telling is not None:
                self.telling.cancel()

    @abstractmethod
    def begin(self) -> None:
        """The page may see it."""

    @abstractmethod
    def hearing(self) -> AbstractAsyncContextManager[None]:
        """`heard` is set at each news. Entering raises RedisError or OSError."""

    @abstractmethod
    async def tell(self) -> None:
        """Send what there is to say, then wait for more. Raises RedisError or OSError."""

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **_: Any) -> None:
        try:
            content = json.loads(text_data or "")
        except (ValueError, RecursionError):
            await self.close(NO_JSON)
        else:
            await self.receive_json(content)

    async def connect(self) -> None:
        await self.accept()  # first, or the browser would not see the code
        user = self.scope["user"]  # one who is not signed in is not active
        if not (user.is_active and (user.is_staff or self.kind == "user")):
            await self.close(NOT_ALLOWED)
            return
        self.begin()
        self.heard = asyncio.Event()
        self.telling = asyncio.create_task(self._tell_while_it_may())

    async def _tell_while_it_may(self) -> None:
        try:
            async with as_long_as(of_session(self.scope, self.kind)), self.hearing():
                while True:
                    self.heard.clear()
                    await self.tell()
        except Revoked as revoked:
            await self.close(SIGNED_OUT if revoked.signed_out else NOT_ALLOWED)
        except AWAY:
            await self.close(NO_REDIS)  # the browser comes again

    async def wait(self, seconds: float) -> None:
        """Until there is news, and no longer than so."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # wait_for could swallow a cancellation
                await self.heard.wait()

    async def disconnect(self, code: int) -> None:
        if self.telling is not None:
            self.telling.cancel()


class ChatFeed(_Told):
    """What goes on in a person's chats, for one open page: `feed.Feed.news()`.

    `?since=` is where the changes ended that the page shows.
    """

    kind = "user"

    def begin(self) -> None:
        user = self.scope["user"]
        since = parse_qs(self.scope["query_string"]).get(b"since", [b""])[0]
        self.feed = Feed(user.pk, since.decode("ascii", "replace"))

    @contextlib.asynccontextmanager
    async def hearing(self) -> AsyncIterator[None]:
        group = people.group(self.scope["user"].pk)
        await self.channel_layer.group_add(group, self.channel_name)
        try:
            yield
        finally:
            with contextlib.suppress(*AWAY):
                await self.channel_layer.group_discard(group, self.channel_name)

    async def chats_changed(self, message: dict[str, Any]) -> None:
        self.feed.tell()
        self.heard.set()

    async def tell(self) -> None:
        if news := await self.feed.news():
            await self.send(text_data=news)
            await asyncio.sleep(APART_S)
        await self.wait(self.feed.pause_s())


class Monitor(_Told):
    """The live picture for staff: `live.picture()`, and once a page has sent {"span": …}, `live.Past`."""

    kind = "staff"

    def begin(self) -> None:
        self.past = live.Past()

    def hearing(self) -> AbstractAsyncContextManager[None]:
        return live.hearing(self.heard)

    async def receive_json(self, content: Any, **_: Any) -> None:
        if self.telling is not None and isinstance(content, dict):
            self.past.choose(content.get("span"))
            self.heard.set()

    async def tell(self) -> None:
        await self.send(text_data=await live.picture())
        if past := await self.past.news():
            await self.send(text_data=past)
        await asyncio.sleep(AT_LEAST_S)
        await self.wait(AT_MOST_S - AT_LEAST_S)
