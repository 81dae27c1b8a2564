"""Commands to the workers: a Redis stream that every worker reads, so that none is lost."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from inference.messages import Answer

from . import log
from .connect import BLOCK_MS, async_client, entries, patiently, sync_client
from .keys import CONTROL

logger = logging.getLogger(__name__)

MAX_COMMANDS = 10_000
# A worker that starts obeys what was said while there was none: the cancelled job is still in the queue.
LOOK_BACK_MS = 600_000
LATEST = 1000  # commands among which there is one that has just been given
GIVE_UP_S = 8.0
ANSWER_S = 5.0  # within which a worker answers: the longest of steps, with a margin


class Command(NamedTuple):
    """One with a `reply` is for one worker, which answers in the log of that id."""

    # "cancel", "park" (and hold), "unpark", "prioritise", "drain", "undrain", "follow": tell `group` of the
    # events of `id`, or "claim": a worker has left its jobs to the others
    kind: str
    id: str  # a generation's; "" for the one in `slot`
    group: str = ""
    worker: str = ""
    slot: str = ""
    reply: str = ""
    priority: str = ""

    @classmethod
    def read(cls, fields: dict[bytes, bytes]) -> Command:
        """Raises ValueError for what is none."""
        try:
            found = cls(**{key.decode(): value.decode() for key, value in fields.items()})
        except TypeError as error:
            raise ValueError(str(error)) from error
        int(found.slot or 0), int(found.priority or 0)
        return found


async def cancel(id: str) -> None:
    """End a generation, in whatever state it is. Tries again for some seconds while Redis is away."""
    try:
        async with asyncio.timeout(GIVE_UP_S):
            await patiently(lambda: _add(async_client(), Command("cancel", id)))
    except TimeoutError:
        logger.error("Generation %s could not be cancelled: Redis is away", id)


def cancel_sync(id: str) -> None:
    """`cancel` for a thread. Raises RedisError or OSError while Redis is away."""
    _add(sync_client(), Command("cancel", id))


async def follow(id: str, group: str) -> None:
    """Have a generation's events sent to one more channel group. Raises RedisError or OSError."""
    await tell(Command("follow", id, group))


async def tell(command: Command) -> None:
    """Give a command that is not answered. Raises RedisError or OSError."""
    await _add(async_client(), command)


async def cancelled() -> set[str]:
    """The ids that were cancelled in the last ten minutes, but for those of which a worker had to answer: it
    may have refused. Waits for Redis while it is away."""
    since = _look_back(await _now_ms())
    found: Any = await patiently(lambda: async_client().xrange(CONTROL, min=since))
    return {one.id for one in _commands(found) if one.kind == "cancel" and not one.reply}


async def cancelled_by_hand(id: str) -> bool:
    """Whether a generation that has just ended was cancelled by an operator, to whom its worker answers.
    Raises RedisError or OSError while Redis is away."""
    found: Any = await async_client().xrevrange(CONTROL, count=LATEST)
    return any(f[b"id"].decode() == id and f[b"kind"] == b"cancel" and f[b"reply"] for _, f in found)


def ask_sync(command: Command) -> dict[str, Any] | None:
    """Send a command that is answered, and wait for the answer, in a thread; None when there was none in
    time. Raises RedisError or OSError while Redis is away."""
    _add(sync_client(), command)
    answer = log.wait_sync(command.reply, ANSWER_S)
    return answer.data if isinstance(answer, Answer) else None


def _add(client: Any, command: Command) -> Any:
    return client.xadd(CONTROL, command._asdict(), maxlen=MAX_COMMANDS, approximate=True)


async def _now_ms() -> int:
    """By Redis' clock, which gives the entries their ids: a worker whose own is fast would hear nothing."""
    seconds, microseconds = await patiently(lambda: async_client().time())
    return 1000 * int(seconds) + int(microseconds) // 1000


def _look_back(now_ms: int) -> str:
    """The entry after which a worker that starts reads."""
    return f"{max(0, now_ms - LOOK_BACK_MS)}-0"


def _commands(found: Iterable[tuple[bytes, dict[bytes, bytes]]]) -> Iterator[Command]:
    """Those in entries of the stream; what is none is left out."""
    for entry, fields in found:
        try:
            yield Command.read(fields)
        except ValueError as error:
            logger.error("Entry %s of the commands is none: %s", entry.decode(), error)


class ControlReader:
    """A worker's ear. Waits for Redis whenever it is away; never raises for it."""

    def __init__(self) -> None:
        self._made_at = time.monotonic()
        self._since = 0  # the same by Redis' clock
        self._last: str | bytes = ""  # that was read

    async def read(self) -> list[Command]:
        """The next commands, in order; [] when none came for some seconds."""
        if not self._last:
            now = await _now_ms()
            self._since = now - int(1000 * (time.monotonic() - self._made_at))
            self._last = _look_back(self._since)
        found = entries(
            await patiently(lambda: async_client().xread({CONTROL: self._last}, count=1000, block=BLOCK_MS))
        )
        commands = []
        for self._last, fields in found:
            said_at = int(self._last.partition(b"-")[0])
            for command in _commands([(self._last, fields)]):
                if not command.reply or said_at >= self._since:  # who asked a predecessor waits no longer
                    commands.append(command)
        return commands
