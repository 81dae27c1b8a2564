"""The monitor's past in Redis: points at several resolutions, and the changes in the slots."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inference.broker import series
from inference.broker.connect import async_client
from inference.broker.keys import WORKERS, lanes, ring, seen, snapshot
from inference.broker.series import Resolution, Sample

from .play import new_id

# A point of so many seconds is still the same one when a test that began in it ends.
LONG = 7 * 10**7
QUIET = Sample(1.0, 0, 0, 100, 0, 0, 0.0, 0, 0.0)


@pytest.fixture(autouse=True)
def _one_long_point(monkeypatch):
    monkeypatch.setattr(series, "SPANS", {"age": Resolution(LONG, 5)})


async def alone(*workers: str) -> None:
    """No other worker has a past."""
    await async_client().delete(WORKERS)
    await async_client().sadd(WORKERS, *workers)


async def test_samples_of_one_point_are_added_and_of_what_waits_the_most_is_kept():
    worker = new_id()
    await alone(worker)
    await series.write(worker, Sample(1.0, 30, 50, 100, 2, 0, 4.5, 1, 0.5))
    await series.write(worker, Sample(3.0, 50, 100, 100, 1, 3, 0.5, 3, 2.5))
    now, [point] = await series.points("age")
    assert point == (LONG * int(now // LONG), 20.0, 0.75, 2, 3, 0.75, 4.5)


async def test_where_nobody_got_a_first_token_there_is_no_time_to_it():
    worker = new_id()
    await alone(worker)
    await series.write(worker, QUIET)
    _, [point] = await series.points("age")
    assert point.first_token is None


async def test_workers_are_told_together():
    first, second = new_id(), new_id()
    await alone(first, second, new_id())
    await series.write(first, Sample(1.0, 10, 100, 100, 1, 2, 9.0, 1, 1.0))
    await series.write(second, Sample(2.0, 10, 0, 300, 2, 0, 3.0, 1, 3.0))
    _, [point] = await series.points("age")
    assert point[1:] == (15.0, 0.25, 3, 2, 2.0, 9.0)


async def test_a_ring_never_grows_and_its_newest_point_takes_the_place_of_the_oldest():
    worker = new_id()
    await alone(worker)
    now, _ = await series.points("age")
    newest = int(now // LONG)
    ages = [newest - age for age in (1, 2, 3, 4, 5, 9)]  # the last two have had their day
    for bucket in reversed(ages):
        await async_client().hset(ring(worker, "age"), str(bucket % 5), json.dumps([bucket, *QUIET]))
    await series.write(worker, QUIET)
    assert await async_client().hlen(ring(worker, "age")) == 5
    _, points = await series.points("age")
    assert [point.at // LONG for point in points] == [newest - age for age in (4, 3, 2, 1, 0)]
    _, points = await series.points("age", after=LONG * (newest - 1))
    assert [point.at // LONG for point in points] == [newest]


async def test_what_is_kept_goes_by_itself_when_a_worker_never_comes_back():
    worker = new_id()
    await alone(worker)
    await series.write(worker, QUIET, [[1.0, 0, "idle", None, None]])
    assert await async_client().ttl(ring(worker, "age")) > 0
    assert await async_client().ttl(lanes(worker)) > 0
    assert await async_client().ttl(seen(worker)) > 0


async def test_changes_in_the_slots_come_in_order_and_once():
    worker = new_id()
    await alone(worker)
    first, second = [1.0, 0, "decode", "ada", "a"], [2.0, 0, "parked", "ada", "a"]
    await series.write(worker, QUIET, [first, second])
    await series.write(worker, QUIET)
    found = await series.changes({})
    last, told = found[worker]
    assert told == [first, second]
    assert await series.changes({worker: last}) == {}
    third = [3.0, 0, "decode", "ada", "a"]
    await series.write(worker, QUIET, [third])
    assert (await series.changes({worker: last}))[worker][1] == [third]


async def test_only_the_last_changes_are_kept():
    worker = new_id()
    await alone(worker)
    for n in range(3 * series.MAX_FLUSHES):
        await series.write(worker, QUIET, [[float(n), 0, "decode", "ada", str(n)]])
    assert await async_client().xlen(lanes(worker)) < 2 * series.MAX_FLUSHES
    _, told = (await series.changes({}))[worker]
    assert told[-1][4] == str(3 * series.MAX_FLUSHES - 1)


async def test_the_lanes_of_a_worker_that_died_end_where_it_was_heard_of_last():
    worker = new_id()
    await alone(worker)
    writing, idle = [1.0, 3, "decode", "ada", "a"], [9.0, 0, "idle", None, None]
    await series.write(worker, QUIET, [writing], at=4.0, begins=True)
    await series.write(worker, QUIET, at=5.5)
    assert await series.last_seen() == {worker: 5.5}
    await series.write(worker, QUIET, [idle], at=9.5, begins=True)  # started again, with fewer slots
    _, told = (await series.changes({}))[worker]
    assert told == [writing, [5.5, None, "gone", None, None], idle]


async def test_the_end_of_lanes_that_are_gone_is_not_kept_for_ever():
    worker = new_id()
    await alone(worker)
    await series.write(worker, QUIET, at=4.0)
    await series.write(worker, QUIET, at=9.5, begins=True)
    assert await async_client().ttl(lanes(worker)) > 0


async def test_a_worker_that_never_lived_before_ends_nothing():
    worker = new_id()
    await alone(worker)
    await series.write(worker, QUIET, at=4.0, begins=True)
    assert await series.changes({}) == {}


async def test_a_worker_is_known_as_long_as_it_lives_or_has_a_point():
    gone, new, with_a_point, alive = (new_id() for _ in range(4))
    await alone(gone, new, with_a_point, alive)
    await async_client().set(snapshot(alive), "{}")
    await series.write(with_a_point, QUIET)
    await series.write(new, QUIET, begins=True)
    names: Any = await async_client().smembers(WORKERS)
    assert {name.decode() for name in names} == {new, with_a_point, alive}
