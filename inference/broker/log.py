"""The event log: one Redis stream a generation. It is the truth; the group message is only fast.

An entry's id is `<sequence number>-0`, so that an event cannot be written twice, and reading on from
a number is a range of the stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from inference.messages import Event, decode_event

from .connect import async_client, entries, sync_client
from .keys import event_log

KEEP_S = 86_400  # a log that nobody has written down yet
KEEP_RECORDED_S = 600  # one whose generation is in the database: for readers that are late

Encoded = list[Any]  # an event as messages.encode_event writes it
_dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def append(pipe: Any, id: str, seq: int, event: Encoded, *, last: bool = False) -> None:
    """Add an event to a pipeline, sync or async; `last` for the one after which none comes."""
    key = event_log(id)
    pipe.execute_command("XADD", key, f"{seq}-0", "e", _dumps(event))
    if last or seq == 1:
        pipe.execute_command("EXPIRE", key, KEEP_S)


def let_go_sync(ids: Iterable[str]) -> None:
    """These generations are over and in the database: their logs need not be kept for long."""
    pipe = sync_client().pipeline(transaction=False)
    for id in ids:
        pipe.expire(event_log(id), KEEP_RECORDED_S)
    pipe.execute()


async def read(id: str, after: int = 0) -> list[tuple[int, Event]]:
    """All events with a sequence number above `after`, in order."""
    return [(seq, decode_event(event)) for seq, event in await read_encoded(id, after)]


def read_sync(id: str, after: int = 0) -> list[tuple[int, Event]]:
    """`read` for a thread."""
    found: Any = sync_client().xrange(event_log(id), min=f"{after + 1}-0")
    return [(seq, decode_event(event)) for seq, event in _decoded(found)]


def wait_sync(id: str, seconds: float) -> Event | None:
    """The first event of a log, once there is one, which is then removed; None if none came in time.

    For a thread; `seconds` is less than a connection's timeout.
    """
    key, client = event_log(id), sync_client()
    found = entries(client.xread({key: "0"}, count=1, block=int(1000 * seconds)))
    if not found:
        return None
    client.delete(key)
    return decode_event(json.loads(found[0][1][b"e"]))


async def read_encoded(id: str, after: int, count: int | None = None) -> list[tuple[int, Encoded]]:
    """The first `count` events with a sequence number above `after`, as they are written."""
    return _decoded(await async_client().xrange(event_log(id), min=f"{after + 1}-0", count=count))


async def last(id: str) -> int:
    """The sequence number of the last event; 0 when there is none."""
    found = await async_client().xrevrange(event_log(id), count=1)
    return _number(found[0][0]) if found else 0


def _decoded(found: Any) -> list[tuple[int, Encoded]]:
    return [(_number(entry), json.loads(fields[b"e"])) for entry, fields in found]


def _number(entry: Any) -> int:
    return int(entry.partition(b"-")[0])
