"""The worker's mouth: events go to their logs, then to the web processes that follow them."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from channels.layers import get_channel_layer
from redis.exceptions import ResponseError

from inference.messages import TERMINAL, Answer, Event, Token, encode_event

from . import log, records
from .connect import AWAY, async_client, patiently

logger = logging.getLogger(__name__)

MAX_ROUTES = 10_000  # of generations; the oldest go, and their followers read the log instead


class Publisher:
    """Belongs to one event loop. Waits for Redis whenever it is away; never raises for it."""

    def __init__(self, worker_id: str) -> None:
        self._worker = worker_id
        self._routes: OrderedDict[str, set[str]] = OrderedDict()

    def route(self, id: str, group: str) -> None:
        """Tell this channel group of the generation's events, too."""
        self._routes.setdefault(id, set()).add(group)
        if len(self._routes) > MAX_ROUTES:
            self._routes.popitem(last=False)

    def unroute(self, id: str) -> None:
        """Tell nobody any more. `publish` does it after a generation's last event."""
        self._routes.pop(id, None)

    async def publish(self, events: Sequence[tuple[str, int, Event]]) -> None:
        """Write (generation id, sequence number, event) to the logs and tell the followers.

        One round trip for all logs, one message for each web process. What is written already is
        not written again.
        """
        if not events:
            return
        batch = [(id, seq, encode_event(event)) for id, seq, event in events]
        await patiently(lambda: self._write(events, batch))
        messages: dict[str, list[tuple[str, int, log.Encoded]]] = {}
        for item in batch:
            for group in self._routes.get(item[0], ()):
                messages.setdefault(group, []).append(item)
        for group, items in messages.items():
            await self._tell(group, items)
        for id, _, event in events:
            if isinstance(event, TERMINAL):
                self.unroute(id)

    async def _write(
        self, events: Sequence[tuple[str, int, Event]], batch: list[tuple[str, int, log.Encoded]]
    ) -> None:
        pipe: Any = async_client().pipeline(transaction=False)
        for (id, seq, encoded), (_, _, event) in zip(batch, events, strict=True):
            if type(event) is Token:
                log.append(pipe, id, seq, encoded, last=False)
                continue
            log.append(pipe, id, seq, encoded, last=isinstance(event, TERMINAL))
            if not isinstance(event, Answer):  # it is nobody's record, and holds text
                records.append(pipe, id, event.kind, self._worker, encoded[1])
        for result in await pipe.execute(raise_on_error=False):
            if isinstance(result, ResponseError) and "equal or smaller" not in str(result):
                logger.error("An event could not be written: %s", result)
            elif isinstance(result, AWAY) and not isinstance(result, ResponseError):
                raise result

    async def _tell(self, group: str, items: list[tuple[str, int, log.Encoded]]) -> None:
        try:
            await get_channel_layer().group_send(group, {"type": "generation.events", "events": items})
        except AWAY as error:
            logger.warning("Followers were not told and will read the log: %s", error)
