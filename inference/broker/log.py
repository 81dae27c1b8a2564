"""The event log: one Redis stream a generation. It is the truth; the group message is only fast.

An entry holds the events that were written together, and when. Its id is `<number of the last of them>-0`,
so that none can be written twice, and reading on from a number is a range of the stream. An entry that cannot
be read is, to whoever reads the log, the end of its generation: a failure that says so.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from redis.exceptions import ResponseError

from inference.messages import TERMINAL, Event, Failed, Finished, decode_event, from_json
from inference.options import Options

from .connect import Script, async_client, entries, sync_client
from .keys import event_log, stream

logger = logging.getLogger(__name__)

UNREADABLE = Failed(500, "server_error", "part of the answer was lost; send the request again")

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
Read = tuple[int, list[Event]]  # the same, read; no events: it cannot be read
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
    """All events with a sequence number above `after`, in order. Raises RedisError or OSError."""
    return list(_events(await read_entries(id, after), after))


def read_sync(id: str, after: int = 0) -> list[tuple[int, Event]]:
    """`read` for a thread."""
    try:
        found = sync_client().xrange(event_log(id), min=f"{after + 1}-0")
    except ResponseError as error:
        return [(after + 1, _no_log(id, error))]
    return list(_events(_entries(id, found), after))


async def history(id: str) -> list[Dated]:
    """All that is there of a generation. Raises RedisError or OSError."""
    events: list[Dated] = []
    try:
        found: Any = await async_client().xrange(event_log(id), min="1-0")  # what has no number is no event
    except ResponseError as error:
        return [(1, _no_log(id, error), 0.0)]
    for entry in found:
        after = events[-1][0] if events else 0
        at = _written_at(entry[1])
        events += [(number, event, at) for number, event in _events(_entries(id, [entry]), after)]
        if events[-1][1] is UNREADABLE:  # what comes next has the number after the last one
            events[-1] = (_number(found[-1][0]), UNREADABLE, at)
        if isinstance(events[-1][1], TERMINAL):
            break
    return events


def wait_sync(id: str, seconds: float) -> Event | None:
    """The first event of a log, once there is one, which is then removed; None if none came in time.

    For a thread; `seconds` is less than a connection's timeout.
    """
    key, client = event_log(id), sync_client()
    found = _entries(id, entries(client.xread({key: "0"}, count=1, block=int(1000 * seconds))))
    if not found:
        return None
    client.delete(key)
    return next(iter(found[0][1]), None)


async def read_entries(id: str, after: int, count: int | None = None) -> list[Read]:
    """The first `count` entries that hold an event with a sequence number above `after`. Raises RedisError or
    OSError."""
    try:
        found = await async_client().xrange(event_log(id), min=f"{after + 1}-0", count=count)
    except ResponseError as error:
        _no_log(id, error)
        return [(after + 1, [])]
    return _entries(id, found)


async def beyond(known: Sequence[tuple[str, int]]) -> list[int]:
    """The indexes of those logs that hold more than the events up to a number, in one round trip. Raises
    RedisError or OSError."""
    found: list[int] = await BEYOND.run([event_log(id) for id, _ in known], [number for _, number in known])
    return [index - 1 for index in found]


def ends_sync(ids: Sequence[str]) -> list[Event | None]:
    """The last event of each log that has one, in one round trip. For a thread."""
    pipe = sync_client().pipeline(transaction=False)
    for id in ids:
        pipe.xrevrange(event_log(id), count=1)
    ends: list[Event | None] = []
    for found in pipe.execute(raise_on_error=False):
        if isinstance(found, ResponseError):  # no stream
            ends.append(UNREADABLE)
        else:
            ends.append((_last_event(found[0][1]) or UNREADABLE) if found else None)
    return ends


async def last(id: str) -> int:
    """The sequence number of the last event; 0 when there is none."""
    found = await async_client().xrevrange(event_log(id), count=1)
    return _number(found[0][0]) if found else 0


def is_cancelled(fields: Any) -> bool:
    """Whether an entry ends with the event that its generation was cancelled."""
    event = _last_event(fields)
    return isinstance(event, Finished) and event.stop_type == "cancelled"


async def copy_uncancelled(id: str, new_id: str) -> bool:
    """Begin a log with all that another holds but its end, if that was a cancellation; whether it is at its
    end all the same. Raises RedisError or OSError."""
    client = async_client()
    found: Any = await client.xrange(event_log(id))
    pipe = client.pipeline(transaction=False)
    before, is_over = 0, False
    for raw, fields in found:
        number = _number(raw)
        if is_cancelled(fields):
            is_over = False
            number -= 1
            fields[b"e"] = encode(json.loads(fields[b"e"])[:-1])
        else:
            is_over = isinstance(_last_event(fields), Finished | Failed)
        if number > before:
            pipe.xadd(event_log(new_id), fields, id=f"{number}-0")
        before = number
    pipe.expire(event_log(new_id), KEEP_S)
    await pipe.execute()
    return is_over


def _last_event(fields: Any) -> Event | None:
    events = _decode(fields)
    return events[-1] if events else None


def _entries(id: str, found: Any) -> list[Read]:
    read: list[Read] = []
    for raw, fields in found:
        read.append((_number(raw), _decode(fields)))
        if not read[-1][1]:
            _unreadable(id, f"entry {raw.decode()}")
    return read


def _decode(fields: Any) -> list[Event]:
    """The events of an entry; none when it cannot be read."""
    try:
        return [decode_event(event) for event in from_json(fields[b"e"])]
    except (KeyError, TypeError, ValueError):
        return []


def _unreadable(id: str, what: object) -> Failed:
    logger.error("The log of generation %s cannot be read: %s", id, what)
    return UNREADABLE


def _no_log(id: str, error: ResponseError) -> Failed:
    """What is there is no stream; any other error passes."""
    if not str(error).startswith("WRONGTYPE"):
        raise error
    return _unreadable(id, error)


def _written_at(fields: Any) -> float:
    """In seconds of the epoch; 0 where that cannot be read."""
    try:
        return int(fields[b"t"]) / 1000
    except (KeyError, ValueError):
        return 0.0


def _events(entries: Iterable[Read], after: int) -> Iterator[tuple[int, Event]]:
    for last, events in entries:
        if not events:
            yield last, UNREADABLE
            return
        for number, event in enumerate(events, last - len(events) + 1):
            if number > after:  # an entry can begin with what another one ends with
                after = number
                yield number, event
                if isinstance(event, TERMINAL):
                    return


def _number(id: Any) -> int:
    return int(id.partition(b"-")[0])
