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
        self._due = 0.0
        self._after = 0.0  # the point before the last that was sent: the last was not full then
        self._lanes: dict[str, str] = {}

    def choose(self, span: Any) -> None:
        """One of `series.SPANS`; anything else changes nothing."""
        if isinstance(span, str) and span in series.SPANS:
            self._span, self._due, self._after, self._lanes = span, 0.0, 0.0, {}

    async def news(self) -> str:
        """{"past": …} as JSON; "" while nothing is due. Raises RedisError or OSError."""
        now = asyncio.get_running_loop().time()
        if not self._span or now < self._due:
            return ""
        span, whole = self._span, not self._due
        step, length = series.SPANS[span]
        self._due = now + min(step / 2, RENEW_AT_MOST_S)
        redis_now, points = await series.points(span, self._after)
        lanes = await series.changes(self._lanes)
        if span != self._span or not self._due:  # another was chosen meanwhile
            return ""
        if points:
            self._after = points[-1].at - step
        self._lanes |= {worker: last for worker, (last, _) in lanes.items()}
        past = {
            "span": span,
            "step": step,
            "length": length,
            "now": redis_now,
            "whole": whole,
            "points": points,
            "lanes": {worker: changes for worker, (_, changes) in lanes.items()},
        }
        return json.dumps({"past": past}, separators=(",", ":"))
