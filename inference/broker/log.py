"""The event log: one Redis stream a generation. It is the truth; the group message is only fast.

An entry holds the events that were written together, and when. Its id is `<number of the last of them>-0`,
so that none can be written twice, and reading on from a number is a range of the stream.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from inference.messages import Event, Failed, Finished, decode_event
from inference.options import Options

from .connect import Script, async_client, entries, sync_client
from .keys import event_log, stream

KEEP_S = Options.from_env().log_lifetime  # a log that nobody has written down yet
RENEW_EVERY_S = KEEP_S / 4  # while its generation is not over
KEEP_RECORDED_S = min(600, KEEP_S)  # one whose generation is in the database: for readers that are late

# KEYS: logs. ARGV: a number for each. The reply: those, counted from 1, that hold an event beyond it.
BEYOND = Script("""
local found = {}
for i, log in ipairs(KEYS) do
  local last = redis.call('XREVRANGE', log, '+', '-', 'COUNT', 1)[1]
  if last and tonumber(string.match(last[1], '^%d+')) > tonumber(ARGV[i]) then found[#found + 1] = i end
end
return found
""")

Encoded = list[Any]  # an event as messages.encode_event writes it
Entry = tuple[int, list[Encoded]]  # events that were written together, and the number of the last
Dated = tuple[int, Event, float]  # an event, its number, and when it was written, in seconds of the epoch

# What an entry holds in its field `e`; its field `t` is the time in milliseconds of the epoch.
encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def let_go_sync(ids: Iterable[str]) -> None:
    """These generations are over and in the database: their logs need not be kept for long."""
    pipe = sync_client().pipeline(transaction=False)
    for id in ids:
        pipe.expire(event_log(id), KEEP_RECORDED_S)
        pipe.expire(stream(id), KEEP_RECORDED_S)
    pipe.execute()


async def read(id: str, after: int = 0) -> list[tuple[int, Event]]:
    """All events with a sequence number above `after`, in order."""
    return list(_events(await read_entries(id, after), after))


def read_sync(id: str, after: int = 0) -> list[tuple[int, Event]]:
    """`read` for a thread."""
    return list(_events(_entries(sync_client().xrange(event_log(id), min=f"{after + 1}-0")), after))


async def history(id: str) -> list[Dated]:
    """All that is there of a generation. Raises RedisError or OSError."""
    events: list[Dated] = []
    found: Any = await async_client().xrange(event_log(id))
    for raw, fields in found:
        entry, at = (_number(raw), json.loads(fields[b"e"])), int(fields[b"t"]) / 1000
        after = events[-1][0] if events else 0
        events += [(number, event, at) for number, event in _events([entry], after)]
    return events


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


async def beyond(known: Sequence[tuple[str, int]]) -> list[int]:
    """The indexes of those logs that hold more than the events up to a number, in one round trip. Raises
    RedisError or OSError."""
    found: list[int] = await BEYOND.run([event_log(id) for id, _ in known], [number for _, number in known])
    return [index - 1 for index in found]


async def last(id: str) -> int:
    """The sequence number of the last event; 0 when there is none."""
    found = await async_client().xrevrange(event_log(id), count=1)
    return _number(found[0][0]) if found else 0


def is_cancelled(fields: Any) -> bool:
    """Whether an entry ends with the event that its generation was cancelled."""
    kind, data, *_ = json.loads(fields[b"e"])[-1]
    return bool(kind == Finished.kind and data["stop_type"] == "cancelled")


async def copy_uncancelled(id: str, new_id: str) -> bool:
    """Begin a log with all that another holds but its end, if that was a cancellation; whether it is at its
    end all the same. Raises RedisError or OSError."""
    client = async_client()
    found: Any = await client.xrange(event_log(id))
    pipe = client.pipeline(transaction=False)
    before, is_over = 0, False
    for raw, fields in found:
        number = _number(raw)
        kind = json.loads(fields[b"e"])[-1][0]
        is_over = kind in (Finished.kind, Failed.kind) and not is_cancelled(fields)
        if is_cancelled(fields):
            number -= 1
            fields[b"e"] = encode(json.loads(fields[b"e"])[:-1])
        if number > before:
            pipe.xadd(event_log(new_id), fields, id=f"{number}-0")
        before = number
    pipe.expire(event_log(new_id), KEEP_S)
    await pipe.execute()
    return is_over


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
