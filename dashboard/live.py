"""What a monitor is sent: the picture of this moment, which all monitors of a process share, and the past
that each has asked for."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any
from weakref import WeakKeyDictionary

from inference.broker import occupancy, series

SHARED_S = 0.1  # so old a picture may be that one monitor gets and another has asked for
LANES_EVERY_S = 1.0
RENEW_AT_MOST_S = 10.0  # a point that is not full yet
UNSEEN = ("histograms", "moves")  # parts of a snapshot that no monitor shows


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


class Past:
    """The points and lanes that one monitor follows, once it has chosen a span: at first all, then what is
    new."""

    def __init__(self) -> None:
        self._span = ""
        self._is_new = False
        self._lanes_due = self._points_due = 0.0
        self._after = 0.0  # the point before the last that was sent: the last was not full then
        self._entries: dict[str, str] = {}  # the last that was sent of each worker's lanes

    def choose(self, span: Any) -> None:
        """One of `series.SPANS`; anything else changes nothing."""
        if isinstance(span, str) and span in series.SPANS:
            self._span, self._is_new, self._after, self._entries = span, True, 0.0, {}

    async def news(self) -> str:
        """{"past": {"span", "whole", "lanes"[, "seen"][, "step", "length", "now", "points"]}} as JSON.

        "" without news. `seen`, of what is whole: when each worker was heard of last.

        Raises RedisError or OSError.
        """
        now = asyncio.get_running_loop().time()
        if not self._span or not (self._is_new or now >= self._lanes_due):
            return ""
        whole, self._is_new = self._is_new, False
        self._lanes_due = now + LANES_EVERY_S
        past: dict[str, Any] = {"span": self._span, "whole": whole}
        lanes = await series.changes(self._entries)
        past["lanes"] = {worker: changes for worker, (_, changes) in lanes.items()}
        if whole:
            past["seen"] = await series.last_seen()
        if whole or now >= self._points_due:
            past |= await self._points(now)
        if self._is_new:  # another was chosen meanwhile
            return ""
        self._entries |= {worker: last for worker, (last, _) in lanes.items()}
        if not (lanes or "points" in past):
            return ""
        return json.dumps({"past": past}, separators=(",", ":"))

    async def _points(self, now: float) -> dict[str, Any]:
        span = self._span
        step, length = series.SPANS[span]
        self._points_due = now + min(step / 2, RENEW_AT_MOST_S)
        redis_now, points = await series.points(span, self._after)
        if points and not self._is_new:
            self._after = points[-1].at - step
        return {"step": step, "length": length, "now": redis_now, "points": points}
