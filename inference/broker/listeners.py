"""Whether the web processes that jobs answer to still listen: one that died leaves streams to nobody."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from channels.layers import get_channel_layer

from .connect import AWAY, async_client

logger = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
LOOKS = 3  # without a subscriber: one that lost its connection is back sooner


class Listeners:
    """Belongs to a worker's event loop."""

    def __init__(self) -> None:
        self._groups: dict[str, set[str]] = {}  # of each job
        self._looks: Counter[str] = Counter()  # at which a group had no subscriber, one after the other

    def add(self, job_id: str, group: str) -> None:
        """The answer to this job goes to this channel group."""
        self._groups[job_id] = {group}

    def also(self, job_id: str, group: str) -> None:
        """One more group follows this job; nothing for a job that is to run on without a listener."""
        if job_id in self._groups:
            self._groups[job_id].add(group)

    def discard(self, job_id: str) -> None:
        self._groups.pop(job_id, None)

    async def deserted(self) -> list[str]:
        """Look once; the jobs whose groups had no subscriber at several looks. Never raises for Redis."""
        layer: Any = get_channel_layer()
        groups = {group for groups in self._groups.values() for group in groups}
        channels = {f"{layer.prefix}__group__{group}": group for group in groups}
        if not channels:
            self._looks.clear()
            return []
        try:
            found: Any = await async_client().pubsub_numsub(*channels)
        except AWAY:
            self._looks.clear()
            return []
        silent = {channels[channel.decode()] for channel, subscribers in found if not subscribers}
        self._looks = Counter({group: self._looks[group] + 1 for group in silent})
        return [
            id for id, groups in self._groups.items() if all(self._looks[group] >= LOOKS for group in groups)
        ]
