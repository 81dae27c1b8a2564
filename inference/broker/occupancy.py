"""The live picture of each worker. A worker lives as long as its picture is there.

Redis' own clock decides that, so that the clocks of two machines need not agree.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from channels.layers import get_channel_layer

from inference.messages import from_json

from .connect import AWAY, Script, async_client, sync_client
from .keys import WORKERS, snapshot

logger = logging.getLogger(__name__)

GROUP = "occupancy"
LIVES_S = 5  # a worker renews its picture each second
AT_LEAST_S = 0.25  # between two messages to the monitors
OVERVIEW_S = 1.0  # the age of an overview: with many chats a picture is long
PLACES = ("slots", "parked", "queue")  # in which a snapshot names generations

SHOW = Script(f"""
redis.call('SET', KEYS[1], ARGV[2], 'EX', {LIVES_S})
redis.call('SADD', KEYS[2], ARGV[1])
""")

Snapshot = dict[str, Any]
T = TypeVar("T")


async def put(picture: Snapshot) -> None:
    """Show a worker's snapshot, and tell the monitors soon. While Redis is away nothing is shown."""
    worker = picture["worker"]
    try:
        await SHOW.run((snapshot(worker), WORKERS), (worker, json.dumps(picture, separators=(",", ":"))))
    except AWAY as error:
        logger.warning("The occupancy could not be shown: %s", error)
        return
    loop = asyncio.get_running_loop()
    (_announcers.get(loop) or _announcers.setdefault(loop, _Announcer())).announce()


async def get_all() -> list[Snapshot]:
    """The snapshot of each live worker, by its id. Raises RedisError or OSError while Redis is away."""
    client = async_client()
    workers: Any = await client.smembers(WORKERS)
    return (
        _pictures(await client.mget([snapshot(w.decode(errors="replace")) for w in sorted(workers)]))
        if workers
        else []
    )


class Overview(NamedTuple):
    """Of all live workers."""

    alive: bool  # there is one
    generations: frozenset[str]  # that they run, have parked or queue


async def overview() -> Overview:
    """At most OVERVIEW_S old: many streams ask for it. Raises RedisError or OSError while Redis is away."""
    return await _overviews.get()


class Shared(Generic[T]):
    """What all who ask in the same moment share: `of` all snapshots, and at most so many seconds old."""

    def __init__(self, of: Callable[[list[Snapshot]], T], seconds: float) -> None:
        self._of, self._seconds = of, seconds
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _Latest[T]] = WeakKeyDictionary()

    async def get(self) -> T:
        """Raises RedisError or OSError while Redis is away."""
        loop = asyncio.get_running_loop()
        latest = self._loops.get(loop) or self._loops.setdefault(loop, _Latest())
        async with latest.turn:
            if not latest.value or loop.time() - latest.at > self._seconds:
                pictures = await get_all()
                latest.value, latest.at = [self._of(pictures)], loop.time()
            return latest.value[0]


class _Latest(Generic[T]):
    """Of one event loop."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.value: list[T] = []  # one, once there is one
        self.at = 0.0


def get_all_sync() -> list[Snapshot]:
    """`get_all` for a thread."""
    client = sync_client()
    workers: Any = client.smembers(WORKERS)
    found: Any = (
        client.mget([snapshot(w.decode(errors="replace")) for w in sorted(workers)]) if workers else []
    )
    return _pictures(found)


def overview_sync() -> Overview:
    """`overview` for a thread; of this moment."""
    return _overview(get_all_sync())


def _overview(pictures: list[Snapshot]) -> Overview:
    places = (place for p in pictures for name in PLACES for place in p.get(name, ()))
    return Overview(bool(pictures), frozenset(str(place.get("generation") or "") for place in places))


_overviews = Shared(_overview, OVERVIEW_S)


def _pictures(raw: Sequence[bytes | str | None]) -> list[Snapshot]:
    """Those that are there and can be read."""
    pictures = []
    for picture in raw:
        if picture is None:
            continue
        try:
            pictures.append(_checked(from_json(picture)))
        except ValueError as error:
            logger.warning("The picture of a worker cannot be read: %s", error)
    return pictures


def _checked(picture: Any) -> Snapshot:
    """Raises ValueError for what is no snapshot."""
    if not (isinstance(picture, dict) and isinstance(picture.get("worker"), str)):
        raise ValueError(f"no snapshot: {picture!r:.80}")
    for name in PLACES:
        places = picture.get(name, [])
        if not (isinstance(places, list) and all(isinstance(place, dict) for place in places)):
            raise ValueError(f"no {name}: {places!r:.80}")
    if not isinstance(picture.get("model", {}), dict):
        raise ValueError(f"no model: {picture['model']!r:.80}")
    return picture


class _Announcer:
    """Tells the monitors that there is news, at most every AT_LEAST_S seconds and always of the last."""

    def __init__(self) -> None:
        self._news = False
        self._task: asyncio.Task[None] | None = None

    def announce(self) -> None:
        self._news = True
        if self._task is None:
            self._task = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        try:
            while self._news:
                self._news = False
                await get_channel_layer().group_send(GROUP, {"type": "occupancy.update"})
                await asyncio.sleep(AT_LEAST_S)
        except AWAY as error:
            logger.warning("The monitors were not told: %s", error)
        finally:
            self._task = None


_announcers: WeakKeyDictionary[asyncio.AbstractEventLoop, _Announcer] = WeakKeyDictionary()
