"""Which generations run here, what number the last event of each had, and who is told of them."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from inference.broker.listeners import Listeners
from inference.broker.publisher import Publisher
from inference.messages import TERMINAL, Event, Job, Preempted, Resumed

from .siblings import Siblings

logger = logging.getLogger(__name__)


class Books:
    """Belongs to the worker's event loop."""

    def __init__(self, publisher: Publisher) -> None:
        self._publisher = publisher
        self._numbers: dict[str, int] = {}
        self._siblings = Siblings()
        self._listeners = Listeners()

    def open(self, job: Job, numbers: Mapping[str, int]) -> None:
        """Generations of a job run here from now on; the numbers of the last event of each."""
        self._siblings.add(job.id, numbers)
        self._numbers |= numbers
        if job.reply_to:
            self._listeners.add(job.id, job.reply_to)
            for id in numbers:
                self._publisher.route(id, job.reply_to)

    def follow(self, id: str, group: str) -> None:
        """One more web process follows what has this id, which may be read only later."""
        self._publisher.route(id, group)
        self._listeners.also(id, group)

    def running(self, id: str) -> Collection[str]:
        """The generations of a job, or the one that has this id, that are not over."""
        return self._siblings.of(id)

    def enter(self, events: Iterable[tuple[str, Event]]) -> tuple[list[tuple[str, int, Event]], list[str]]:
        """Number events, and close the books of what is over with them: the events, and the jobs."""
        numbered, over = [], []
        for generation, event in events:
            number = self._numbers.get(generation, 0) + 1
            self._numbers[generation] = number
            numbered.append((generation, number, event))
            if isinstance(event, Preempted | Resumed):
                logger.info("%s %s", generation, _told(event))
            elif isinstance(event, TERMINAL):
                del self._numbers[generation]
                if job_id := self._siblings.end(generation):
                    over.append(job_id)
                    self._listeners.discard(job_id)
        return numbered, over

    async def deserted(self) -> list[str]:
        """Jobs whose web processes are gone, each once."""
        gone = await self._listeners.deserted()
        for job_id in gone:
            self._listeners.discard(job_id)
        return gone


def _told(event: Preempted | Resumed) -> str:
    """A park or a resume in the words of the worker's log."""
    if isinstance(event, Resumed):
        return f"resumed in slot {event.slot} after {event.waited:.1f} s"
    if event.cause in ("worker", "client"):
        return f"parked: its {event.cause} was gone, to be recomputed"
    if not event.cells:
        return f"parked before its prompt began ({event.cause})"
    where = f"{event.bytes / 2**20:.1f} MiB of RAM" if event.method == "swap" else "to be recomputed"
    return f"parked from slot {event.slot} ({event.cause}): {event.cells} cells, {where}"
