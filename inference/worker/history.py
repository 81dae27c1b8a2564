"""What a worker's pictures come to: a sample a second, and each change in its slots."""

from __future__ import annotations

import logging
import time
from typing import Any

from inference.broker import series
from inference.broker.connect import AWAY
from inference.broker.series import Change, Sample

logger = logging.getLogger(__name__)

EVERY_S = 0.95  # between two samples, so that a heartbeat of a second makes one each time
MAX_CHANGES = 2000  # kept while Redis is away

Picture = dict[str, Any]


class History:
    """Sees every picture that a worker shows, and writes what is kept of them."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._slots: dict[int, tuple[Any, ...]] = {}
        self._changes: list[Change] = []
        self._sampled_at = time.monotonic()
        self._totals = (0, 0, 0.0)
        self._begins = True

    async def add(self, picture: Picture) -> None:
        """Note a picture. While Redis is away what is to be written waits, within bounds."""
        self._note_changes(picture)
        now = time.monotonic()
        if now - self._sampled_at < EVERY_S:
            return
        first = picture["histograms"]["first_token_seconds"]
        totals = (picture["counters"]["tokens_predicted_total"], sum(first["counts"]), first["sum"])
        tokens, firsts, first_s = (new - old for new, old in zip(totals, self._totals, strict=True))
        sample = Sample(
            seconds=round(now - self._sampled_at, 3),
            tokens=int(tokens),
            used=picture["pool"]["used"],
            cells=picture["pool"]["cells"],
            parked=len(picture["parked"]),
            queued=len(picture["queue"]),
            silence=round(picture["silence"], 3),
            firsts=int(firsts),
            first_s=round(first_s, 3),
        )
        changes, self._changes = self._changes, []
        try:
            await series.write(self._worker, sample, changes, at=picture["at"], begins=self._begins)
        except AWAY as error:
            self._changes = (changes + self._changes)[-MAX_CHANGES:]
            logger.warning("The monitor's history could not be written: %s", error)
            return
        self._sampled_at, self._totals, self._begins = now, totals, False

    def _note_changes(self, picture: Picture) -> None:
        for slot in picture["slots"]:
            state = "held" if slot["held"] else slot["state"]
            shown = (state, slot["owner"], slot["generation"])
            if self._slots.get(slot["id"]) != shown:
                self._slots[slot["id"]] = shown
                self._changes.append([round(picture["taken_at"], 3), slot["id"], *shown])
