"""What the pages follow: a generation's events, and the occupancy of the workers."""

from __future__ import annotations

import asyncio
import contextlib
import json
from contextlib import aclosing
from typing import Any
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

GROUP = "occupancy"
SIGNED_OUT = 4401  # its session has ended; the browser comes again, perhaps with another
NOT_STAFF = NOT_SIGNED_IN = 4403  # trying again would not help
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


class PageSocket(AsyncJsonWebsocketConsumer):  # type: ignore[misc]
    """A WebSocket of a page. What is no JSON comes from no page of ours, and ends it."""

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **_: Any) -> None:
        try:
            content = json.loads(text_data or "")
        except (ValueError, RecursionError):
            await self.close(NO_JSON)
        else:
            await self.receive_json(content)


class ChatFeed(PageSocket):
    """What goes on in a person's chats, for one open page: `feed.Feed.news()`.

    `?since=` is where the changes ended that the page shows.
    """

    async def connect(self) -> None:
        await self.accept()  # first, or the browser would not see the code
        user = self.scope["user"]
        if not user.is_active:  # nor is who is not signed in
            await self.close(NOT_SIGNED_IN)
            return
        since = parse_qs(self.scope["query_string"]).get(b"since", [b""])[0]
        self.feed = Feed(user.pk, since.decode("ascii", "replace"))
        self.heard = asyncio.Event()
        self.group = people.group(user.pk)
        await self.channel_layer.group_add(self.group, self.channel_name)
        self.telling = asyncio.create_task(self._tell_while_it_may())

    async def chats_changed(self, message: dict[str, Any]) -> None:
        self.feed.tell()
        self.heard.set()

    async def _tell_while_it_may(self) -> None:
        try:
            async with as_long_as(of_session(self.scope)):
                await self._tell()
        except Revoked as revoked:
            await self.close(SIGNED_OUT if revoked.signed_out else NOT_SIGNED_IN)
        except AWAY:
            await self.close(NO_REDIS)  # the browser comes again

    async def _tell(self) -> None:
        while True:
            self.heard.clear()
            if news := await self.feed.news():
                await self.send(text_data=news)
                await asyncio.sleep(APART_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.feed.pause_s()):  # wait_for could swallow a cancellation
                    await self.heard.wait()

    async def disconnect(self, code: int) -> None:
        if hasattr(self, "telling"):
            self.telling.cancel()
            await self.channel_layer.group_discard(self.group, self.channel_name)


class Monitor(PageSocket):
    """The live picture for staff: `live.picture()`, and once a page has sent {"span": …}, `live.Past`.

    A group message only says that there is news; what is sent is read at that moment, however many came.
    """

    async def connect(self) -> None:
        await self.accept()  # first, or the browser would not see the code
        user = self.scope["user"]
        if not (user.is_active and user.is_staff):
            await self.close(NOT_STAFF)
            return
        self.news = asyncio.Event()
        self.past = live.Past()
        await self.channel_layer.group_add(GROUP, self.channel_name)
        self.feed = asyncio.create_task(self._feed())

    async def receive_json(self, content: Any, **_: Any) -> None:
        if hasattr(self, "feed") and isinstance(content, dict):
            self.past.choose(content.get("span"))
            self.news.set()

    async def occupancy_update(self, message: dict[str, Any]) -> None:
        self.news.set()

    async def _feed(self) -> None:
        try:
            async with as_long_as(of_session(self.scope, "staff")):
                await self._tell()
        except Revoked as revoked:
            await self.close(SIGNED_OUT if revoked.signed_out else NOT_STAFF)
        except AWAY:
            await self.close(NO_REDIS)  # the browser comes again

    async def _tell(self) -> None:
        while True:
            self.news.clear()
            await self.send(text_data=await live.picture())
            if past := await self.past.news():
                await self.send(text_data=past)
            await asyncio.sleep(AT_LEAST_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AT_MOST_S - AT_LEAST_S):  # wait_for could swallow a cancellation
                    await self.news.wait()

    async def disconnect(self, code: int) -> None:
        if hasattr(self, "feed"):
            self.feed.cancel()
            await self.channel_layer.group_discard(GROUP, self.channel_name)
