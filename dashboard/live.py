"""What monitors are sent: the picture of this moment, and the past that each has asked for. However many
monitors a process has, it hears, reads and encodes once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from channels.layers import get_channel_layer

from inference.broker import occupancy, series
from inference.broker.connect import AWAY

logger = logging.getLogger(__name__)

RETRY_S = 0.25  # after a message that could not be read
SHARED_S = 0.1  # so old a picture may be that one monitor gets and another has asked for
LANES_EVERY_S = 1.0
RENEW_AT_MOST_S = 10.0  # a point that is not full yet
UNSEEN = ("histograms", "moves")  # parts of a snapshot that no monitor shows


@contextlib.asynccontextmanager
async def hearing(heard: asyncio.Event) -> AsyncIterator[None]:
    """`heard` is set whenever a worker has shown a new picture. Entering raises RedisError or OSError."""
    loop = asyncio.get_running_loop()
    ear = _ears.get(loop) or _ears.setdefault(loop, _Ear())
    await ear.join(heard)
    try:
        yield
    finally:
        ear.leave(heard)


class _Ear:
    """Hears for all monitors, as long as there are some: a message that each got by itself would cost each a
    turn of Channels."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Event] = set()
        self._starting = asyncio.Lock()
        self._listener: asyncio.Task[None] | None = None

    async def join(self, heard: asyncio.Event) -> None:
        async with self._starting:
            if self._listener is None:
                layer = get_channel_layer()
                channel = await layer.new_channel()
                await layer.group_add(occupancy.GROUP, channel)
                self._listener = asyncio.create_task(self._listen(layer, channel))
            self._waiting.add(heard)

    def leave(self, heard: asyncio.Event) -> None:
        self._waiting.discard(heard)
        if not self._waiting and self._listener is not None:
            self._listener.cancel()
            self._listener = None

    async def _listen(self, layer: Any, channel: str) -> None:
        try:
            while True:
                try:
                    await layer.receive(channel)
                except Exception:
                    logger.exception("A message to the monitors could not be read")
                    await asyncio.sleep(RETRY_S)
                for heard in self._waiting:
                    heard.set()
        finally:
            with contextlib.suppress(*AWAY):
                await layer.group_discard(occupancy.GROUP, channel)


_ears: WeakKeyDictionary[asyncio.AbstractEventLoop, _Ear] = WeakKeyDictionary()


async def picture() -> str:
    """{"workers": [snapshot, ...], "now": seconds since the epoch} as JSON. Raises RedisError or OSError."""
    loop = asyncio.get_running_loop()
    return await (_pictures.get(loop) or _pictures.setdefault(loop, _Picture())).get()


class _Picture:
    """Read and encoded once for all who ask in the same moment."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._text = ""
        self._at = float("-inf")

    async def get(self) -> str:
        loop = asyncio.get_running_loop()
        async with self._turn:
            if loop.time() - self._at >= SHARED_S:
                self._at = loop.time()
                workers = [_shown(snapshot) for snapshot in await occupancy.get_all()]
                self._text = json.dumps({"workers": workers, "now": time.time()}, separators=(",", ":"))
        return self._text


_pictures: WeakKeyDictionary[asyncio.AbstractEventLoop, _Picture] = WeakKeyDictionary()


def _shown(snapshot: dict[str, Any]) -> dict[str, Any]:
    shown = {name: part for name, part in snapshot.items() if name not in UNSEEN}
    if "model" in shown:
        shown["model"] = {k: v for k, v in shown["model"].items() if k not in ("chat_template", "path")}
    return shown


class _Place(NamedTuple):
    """How far into the past of a span a monitor is. At the beginning it has nothing of it."""

    span: str
    entries: frozenset[tuple[str, str]] = frozenset()  # worker, the last entry of its lanes that was sent
    after: float = 0.0  # the point before the last that was sent: the last was not full then
    points_due: float = 0.0

    @property
    def is_beginning(self) -> bool:
        return self.points_due == 0.0


class _News(NamedTuple):
    """What there is to say to who is at a place."""

    text: str
    place: _Place  # where it leads
    until: float  # when there may be more


class Past:
    """The points and lanes that one monitor follows, once it has chosen a span: at first all, then what is
    new."""

    def __init__(self) -> None:
        self._place: _Place | None = None
        self._due = 0.0

    def choose(self, span: Any) -> None:
        """One of `series.SPANS`; anything else changes nothing."""
        if isinstance(span, str) and span in series.SPANS:
            self._place, self._due = _Place(span), 0.0

    async def news(self) -> str:
        """{"past": {"span", "whole", "lanes"[, "seen"][, "step", "length", "now", "points"]}} as JSON.

        "" without news. `seen`, of what is whole: when each worker was heard of last.

        Raises RedisError or OSError.
        """
        loop = asyncio.get_running_loop()
        place = self._place
        if place is None or loop.time() < self._due:
            return ""
        news = await (_pasts.get(loop) or _pasts.setdefault(loop, _Pasts())).after(place)
        if self._place is not place:  # another was chosen meanwhile
            return ""
        self._place, self._due = news.place, news.until
        return news.text


class _Pasts:
    """Reads and encodes once for all monitors that are at the same place. All look at the same moments, so
    that they soon are, whenever they came."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._known: dict[_Place, _News] = {}

    async def after(self, place: _Place) -> _News:
        async with self._turn:
            now = asyncio.get_running_loop().time()
            self._known = {place: news for place, news in self._known.items() if now < news.until}
            if place not in self._known:
                self._known[place] = await _read(place, now)
            return self._known[place]


_pasts: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pasts] = WeakKeyDictionary()


def _next(now: float, every: float) -> float:
    return (now // every + 1) * every


async def _read(place: _Place, now: float) -> _News:
    until = _next(now, LANES_EVERY_S)
    step, length = series.SPANS[place.span]
    past: dict[str, Any] = {"span": place.span, "whole": place.is_beginning}
    lanes = await series.changes(dict(place.entries))
    past["lanes"] = {worker: changes for worker, (_, changes) in lanes.items()}
    if place.is_beginning:
        past["seen"] = await series.last_seen()
    after, points_due = place.after, place.points_due
    if now >= points_due:
        points_due = _next(now, min(step / 2, RENEW_AT_MOST_S))
        redis_now, points = await series.points(place.span, after)
        past |= {"step": step, "length": length, "now": redis_now, "points": points}
        after = points[-1].at - step if points else after
    entries = dict(place.entries) | {worker: last for worker, (last, _) in lanes.items()}
    text = json.dumps({"past": past}, separators=(",", ":")) if lanes or "points" in past else ""
    return _News(text, _Place(place.span, frozenset(entries.items()), after, points_due), until)
