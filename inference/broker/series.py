"""The workers' recent past, for the monitor: a few figures at three resolutions, and who was in each slot.

Each worker writes its own once a second, so that nothing is written twice however many web processes there
are. All of it is bounded: a resolution is a ring of points, in which the newest takes the place of the
oldest, and of the changes in the slots the last are kept. Redis' own clock files them.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inference.messages import from_json

from .connect import Script, async_client
from .keys import WORKERS, lanes, ring, seen, snapshot

MAX_FLUSHES = 400  # of changes in the slots; there is one a second at most
LANES_LIVE_S = 900


class Resolution(NamedTuple):
    step: int  # seconds
    length: int  # points


SPANS = {"5m": Resolution(2, 150), "1h": Resolution(15, 240), "24h": Resolution(300, 288)}


class Sample(NamedTuple):
    """What a worker tells of the time since its last sample; `_MERGED` says how several make a point."""

    seconds: float
    tokens: int  # generated
    used: int  # cells
    cells: int
    parked: int
    queued: int
    silence: float  # seconds for which some chat has got no token
    firsts: int  # chats that got their first token
    first_s: float  # the sum of the seconds that these waited for it


_MERGED = "++++>>>++"  # added, or the greatest taken

# The changes in a worker's slots: [seconds since the epoch, slot, state, owner, generation]; slot null: an
# incarnation of the worker ended then, and all that was in its slots.
Change = list[Any]
CHANGE_LENGTH = 5

# KEYS: lanes, seen, then the rings. ARGV: the sample, the changes or "", then step and length of each ring;
# at the end the time, and whether this is the first that an incarnation writes.
WRITE = Script(f"""
local now = tonumber(redis.call('TIME')[1])
local sample, merged = cjson.decode(ARGV[1]), '{_MERGED}'
for i = 3, #KEYS do
  local step, length = tonumber(ARGV[2 * i - 3]), tonumber(ARGV[2 * i - 2])
  local bucket = math.floor(now / step)
  local place = bucket % length
  local old = redis.call('HGET', KEYS[i], place)
  local is_read, read = pcall(cjson.decode, old or '')
  old = is_read and type(read) == 'table' and #read == #sample + 1 and read
  local point = {{bucket}}
  for j, value in ipairs(sample) do
    if old and old[1] == bucket and type(old[j + 1]) == 'number' then
      value = merged:sub(j, j) == '+' and old[j + 1] + value or math.max(old[j + 1], value)
    end
    point[j + 1] = value
  end
  redis.call('HSET', KEYS[i], place, cjson.encode(point))
  redis.call('EXPIRE', KEYS[i], step * length)
end
local before = ARGV[#ARGV] == '1' and redis.call('GET', KEYS[2])
if before then
  redis.call('XADD', KEYS[1], '*', 'c', '[[' .. before .. ',null,"gone",null,null]]')
  redis.call('EXPIRE', KEYS[1], {LANES_LIVE_S})
end
redis.call('SET', KEYS[2], ARGV[#ARGV - 1], 'EX', {LANES_LIVE_S})
if ARGV[2] ~= '' then
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', {MAX_FLUSHES}, '*', 'c', ARGV[2])
  redis.call('EXPIRE', KEYS[1], {LANES_LIVE_S})
end
""")


async def write(
    worker: str, sample: Sample, changes: Sequence[Change] = (), *, at: float = 0.0, begins: bool = False
) -> None:
    """Add a worker's sample to its points, and the changes in its slots up to `at` to its lanes. What
    `begins` ends the lanes of the worker's last incarnation where that was heard of last, and forgets the
    workers of which nothing is left. Raises RedisError or OSError while Redis is away."""
    keys = [lanes(worker), seen(worker), *(ring(worker, span) for span in SPANS)]
    told = json.dumps(list(changes), separators=(",", ":")) if changes else ""
    steps = [part for resolution in SPANS.values() for part in resolution]
    await WRITE.run(keys, [json.dumps(sample), told, *steps, round(at, 3), int(begins)])
    if begins:
        await _forget_workers()


async def _forget_workers() -> None:
    """Those that neither live nor have a point, as whoever looks asks for each that is known."""
    client = async_client()
    workers: Any = list(await client.smembers(WORKERS))
    pipe = client.pipeline(transaction=False)
    for name in workers:
        worker = name.decode(errors="replace")
        pipe.exists(snapshot(worker), *(ring(worker, span) for span in SPANS))
    found = await pipe.execute()
    if gone := [name for name, n in zip(workers, found, strict=True) if not n]:
        await client.srem(WORKERS, *gone)


class Point(NamedTuple):
    """Of all workers together, for `step` seconds from `at` on."""

    at: int  # seconds since the epoch
    tokens_per_second: float
    pool: float  # the share of the cells in use, on average
    parked: int  # at most, as all that follow
    queued: int
    first_token: float | None  # seconds, on average; None where nobody got one
    silence: float  # seconds


async def points(span: str, after: float = 0) -> tuple[float, list[Point]]:
    """Redis' time, and the points of this span that began after `after`, oldest first; where no worker lived
    there is none. Raises RedisError or OSError."""
    step, length = SPANS[span]
    client = async_client()
    pipe = client.pipeline(transaction=False)
    pipe.time()
    pipe.smembers(WORKERS)
    (seconds, micros), workers = await pipe.execute()
    newest = seconds // step
    oldest = max(newest - length, int(after // step)) + 1
    places = [bucket % length for bucket in range(oldest, newest + 1)]
    if not (workers and places):
        return seconds + micros / 1e6, []
    pipe = client.pipeline(transaction=False)
    for worker in workers:
        pipe.hmget(ring(worker.decode(errors="replace"), span), places)
    found: dict[int, list[Sample]] = {}
    for raw in (value for values in await pipe.execute() for value in values if value):
        bucket, sample = _read_point(raw)
        if oldest <= bucket <= newest:
            found.setdefault(bucket, []).append(sample)
    return seconds + micros / 1e6, [_point(bucket * step, found[bucket]) for bucket in sorted(found)]


def _read_point(raw: bytes) -> tuple[int, Sample]:
    """A worker's sample and its place in time; of what cannot be read, a place that is never shown."""
    try:
        bucket, *figures = from_json(raw)
        if all(isinstance(figure, int | float) for figure in (bucket, *figures)):
            return int(bucket), Sample(*figures)
    except (TypeError, ValueError):
        pass
    return -1, Sample(*(0,) * len(Sample._fields))


def _point(at: int, samples: Sequence[Sample]) -> Point:
    cells, firsts = sum(s.cells for s in samples), sum(s.firsts for s in samples)
    return Point(
        at=at,
        tokens_per_second=round(sum(s.tokens / s.seconds for s in samples if s.seconds), 2),
        pool=round(sum(s.used for s in samples) / cells, 4) if cells else 0.0,
        parked=sum(s.parked for s in samples),
        queued=sum(s.queued for s in samples),
        first_token=round(sum(s.first_s for s in samples) / firsts, 3) if firsts else None,
        silence=max(s.silence for s in samples),
    )


Lanes = dict[str, tuple[str, list[Change]]]


async def changes(after: Mapping[str, str]) -> Lanes:
    """The changes in the slots of each worker after the entry named for it, oldest first, with the name of
    the last entry. Raises RedisError or OSError."""
    client = async_client()
    names: Any = await client.smembers(WORKERS)
    workers = sorted(name.decode(errors="replace") for name in names)
    pipe = client.pipeline(transaction=False)
    for worker in workers:
        pipe.xrange(lanes(worker), min=f"({after[worker]}" if worker in after else "-")
    found: Lanes = {}
    for worker, entries in zip(workers, await pipe.execute() if workers else (), strict=True):
        if entries:
            told = [change for _, fields in entries for change in _read_changes(fields)]
            found[worker] = (entries[-1][0].decode(), told)
    return found


def _read_changes(fields: dict[bytes, bytes]) -> list[Change]:
    """Those of an entry; none when it cannot be read."""
    try:
        return [change for change in from_json(fields[b"c"]) if len(change) == CHANGE_LENGTH]
    except (KeyError, TypeError, ValueError):
        return []


async def last_seen() -> dict[str, float]:
    """When each worker that has lanes wrote last, in seconds of the epoch. Raises RedisError or OSError."""
    client = async_client()
    names: Any = await client.smembers(WORKERS)
    workers = [name.decode(errors="replace") for name in names]
    times: Any = await client.mget([seen(worker) for worker in workers]) if workers else []
    found: dict[str, float] = {}
    for worker, at in zip(workers, times, strict=True):
        with contextlib.suppress(TypeError, ValueError):  # None, or no number
            found[worker] = float(at)
    return found
