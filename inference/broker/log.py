"""The event log: one Redis stream a generation. It is the truth; the group message is only fast.

An entry holds the events that were written together. Its id is `<number of the last of them>-0`, so that
none can be written twice, and reading on from a number is a range of the stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from inference.messages import Event, decode_event
from inference.options import Options

from .connect import async_client, entries, sync_client
from .keys import event_log

KEEP_S = Options.from_env().log_lifetime  # a log that nobody has written down yet
KEEP_RECORDED_S = min(600, KEEP_S)  # one whose generation is in the database: for readers that are late

Encoded = list[Any]  # an event as messages.encode_event writes it
Entry = tuple[int, list[Encoded]]  # events that were written together, and the number of the last

# What an entry holds in its field `e`.
encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def let_go_sync(ids: Iterable[str]) -> None:
    """These generations are over and in the database: their logs need not be kept for long."""
    pipe = sync_client().pipeline(transaction=False)
    for id in ids:
        pipe.expire(event_log(id), KEEP_RECORDED_S)
    pipe.execute()


async def read(id: str, after: int = 0) -> list[tuple[int, Event]]:
    """All events with a sequence number above `after`, in order."""
    return list(_events(await read_entries(id, after), after))


def read_sync(id: str, after: int = 0) -> list[tuple[int, Event]]:
    """`read` for a thread."""
    return list(_events(_entries(sync_client().xrange(event_log(id), min=f"{after + 1}-0")), after))


def wait_sync(id: str, seconds: float) -> Event | None:
    """The first event of a log, once there is one, which is then removed; None if none came in time.

    For a thread; `seconds` is less than a connection's timeout.
    """
    key, client = event_log(id), sync_client()
    found = _entries(entries(client.xread({key: "0"}, count=1, block=int(1000 * seconds))))
    if not found:
        return None
    client.delete(key)
    return decode_event(found[0][1][0])


async def read_entries(id: str, after: int, count: int | None = None) -> list[Entry]:
    """The first `count` entries that hold an event with a sequence number above `after`."""
    return _entries(await async_client().xrange(event_log(id), min=f"{after + 1}-0", count=count))


async def last(id: str) -> int:
    """The sequence number of the last event; 0 when there is none."""
    found = await async_client().xrevrange(event_log(id), count=1)
    return _number(found[0][0]) if found else 0


def _entries(found: Any) -> list[Entry]:
    return [(_number(id), json.loads(fields[b"e"])) for id, fields in found]


def _events(entries: Iterable[Entry], after: int) -> Iterator[tuple[int, Event]]:
    for last, events in entries:
        for number, event in enumerate(events, last - len(events) + 1):
            if number > after:  # an entry can begin with what another one ends with
                after = number
                yield number, decode_event(event)


def _number(id: Any) -> int:
    return int(id.partition(b"-")[0])
