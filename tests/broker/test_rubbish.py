"""What cannot be read in Redis costs what it belongs to, and nobody else."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from channels.layers import get_channel_layer

from inference.broker import control, jobs, log, occupancy, people, series, streams
from inference.broker import hub as hub_module
from inference.broker.connect import async_client, sync_client
from inference.broker.control import Command, ControlReader
from inference.broker.hub import hub
from inference.broker.job_reader import JobReader
from inference.broker.keys import (
    CONTROL,
    IN_FLIGHT,
    INCARNATIONS,
    JOBS,
    PERMITS,
    QUEUED,
    RECORDS,
    SUSPECTS,
    WORKERS,
    changes,
    event_log,
    lanes,
    ring,
    seen,
    snapshot,
    stream,
)
from inference.broker.lease import Lease
from inference.broker.publisher import Publisher
from inference.broker.records import RecordReader
from inference.broker.series import SPANS, Sample
from inference.messages import Answer, Job, Token, encode_event

from .play import END, job, new_id, numbered, picture, soon, told

RUBBISH = [
    b"\xff\xfe",
    b"",
    b"{",
    b"null",
    b"7",
    b"[7]",
    b"{}",
    b"[" * 5_000,
    b'"token"',
    b'[["token"]]',
    b'[["token", "x", "y"]]',
    b'[["token", 1, "x", 3]]',
    b'[["unheard of", {}]]',
    b'[["started", {"slot": "first"}]]',
    b'[["started", {"slot": 1, "more": 2}]]',
    b'[["finished", {"timings": 1}]]',
    b'[[["token"], 1, "x"]]',
]

pytestmark = pytest.mark.usefixtures("empty_redis")


@pytest.fixture
def empty_redis() -> None:
    sync_client().flushall()


@pytest.fixture(params=RUBBISH, ids=range(len(RUBBISH)))
def rubbish(request: pytest.FixtureRequest) -> bytes:
    return bytes(request.param)


async def write(id: str, raw: bytes) -> None:
    """A log of a whole generation whose fourth event cannot be read."""
    events = numbered(id, told("a", "b"))
    await Publisher("w1").publish(events[:3])
    await async_client().xadd(event_log(id), {"e": raw, "t": 0}, id="4-0")
    await Publisher("w1").publish(events[4:])


async def test_a_generation_ends_where_its_log_cannot_be_read(rubbish: bytes) -> None:
    id = new_id()
    await write(id, rubbish)
    wanted = [*told("a")[:3], log.UNREADABLE]
    assert [event for _, event in await log.read(id)] == wanted
    assert [event for _, event in log.read_sync(id)] == wanted
    assert [event for _, event, _ in await log.history(id)] == wanted
    async with hub().follow(id) as follower:
        heard = [await follower.next(soon()) for _ in range(4)]
    assert heard == [*enumerate(wanted, 1)]


async def test_what_comes_after_its_end_changes_nothing(rubbish: bytes) -> None:
    id, events = new_id(), told("a")
    await Publisher("w1").publish(numbered(id, events))
    await async_client().xadd(event_log(id), {"e": rubbish})
    assert [event for _, event in await log.read(id)] == events
    assert [event for _, event, _ in await log.history(id)] == events


async def test_where_there_is_no_log_but_something_else_it_is_the_same() -> None:
    id = new_id()
    await async_client().set(event_log(id), "a log")
    assert await log.read(id) == log.read_sync(id) == [(1, log.UNREADABLE)]
    assert [event for _, event, _ in await log.history(id)] == [log.UNREADABLE]
    assert log.ends_sync([id, new_id()]) == [log.UNREADABLE, None]
    async with hub().follow(id) as follower:
        assert await follower.next(soon()) == (1, log.UNREADABLE)


async def test_an_entry_without_a_number_is_no_event() -> None:
    id = new_id()
    await async_client().xadd(event_log(id), {"e": log.encode(list(map(encode_event, told("x"))))}, id="0-1")
    assert await log.history(id) == []
    assert await log.read(id) == []
    await Publisher("w1").publish(numbered(id, told("a")))
    assert [event for _, event, _ in await log.history(id)] == told("a")


async def test_an_answer_to_a_command_that_cannot_be_read_is_none(rubbish: bytes) -> None:
    await async_client().xadd(event_log("reply"), {"e": rubbish}, id="1-0")
    assert await asyncio.to_thread(log.wait_sync, "reply", 1.0) is None
    await Publisher("w1").publish([("reply", 1, Answer({"a": 1}))])
    assert await asyncio.to_thread(log.wait_sync, "reply", 1.0) == Answer({"a": 1})


async def test_a_message_that_cannot_be_read_is_one_that_was_lost(
    rubbish: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "RETRY_S", 0.0)
    id, publisher = new_id(), Publisher("w1")
    async with hub().follow(id, fresh=True) as follower:
        layer: Any = get_channel_layer()
        try:
            what = json.loads(rubbish)
        except (ValueError, RecursionError):
            what = rubbish
        for message in (
            {"type": "generation.events", "events": what},
            {"type": "generation.events", "events": [[id, 1, what]]},
            {"type": "generation.events", "events": [[id, what, [["token", 1, "x"]]]]},
            {"type": "generation.events"},
        ):
            await layer.group_send(hub().group, message)
        await async_client().publish(f"{layer.prefix}__group__{hub().group}", rubbish)
        publisher.route(id, hub().group)
        await publisher.publish(numbered(id, told("a")))
        heard = [await follower.next(soon()) for _ in told("a")]
    assert heard == [*enumerate(told("a"), 1)]


async def test_a_command_that_cannot_be_read_is_left_out(rubbish: bytes) -> None:
    reader = ControlReader()
    broken: list[dict[Any, Any]] = [
        {"kind": rubbish},
        {rubbish: "cancel"},
        {"kind": "cancel", "id": "a", "more": rubbish},
        {"kind": "park", "id": "", "slot": rubbish or b"x"},
    ]
    for fields in broken:
        await async_client().xadd(CONTROL, fields)
    await control.cancel("the-one")
    found: list[Command] = []
    while Command("cancel", "the-one") not in found:
        found += await reader.read()
    assert "the-one" in await control.cancelled()


async def test_an_entry_of_the_queue_that_is_no_job_is_dropped(rubbish: bytes) -> None:
    wanted, reader = job(), JobReader(new_id())
    bodies: list[Any] = [{"n": 10**9}, {"n": "x"}, {"prompts": 1}, {"n": 0}, []]
    made: list[Any] = [
        json.dumps({"id": new_id(), "kind": "generate", "body": b, "reply_to": ""}) for b in bodies
    ]
    for raw in (rubbish, *made):
        await async_client().xadd(JOBS, {"job": raw})
    await async_client().xadd(JOBS, {rubbish or b"x": "y"})
    await async_client().hset(QUEUED, wanted.id, rubbish)
    assert await jobs.submit_again(wanted) is not None
    assert jobs.waiting_sync([new_id(), wanted.id]) == {wanted.id}
    found: list[Job] = []
    while not found:
        found = await reader.read()
    assert found == [wanted]
    assert await async_client().xlen(JOBS) == 1


async def test_of_a_worker_that_is_gone_whatever_is_noted_its_jobs_are_claimed(rubbish: bytes) -> None:
    one, two, wanted = await Lease.acquire("a"), await Lease.acquire("b"), job()
    await jobs.submit(wanted)
    reader = JobReader(one.token)
    while not await reader.read():
        pass
    await async_client().hset(SUSPECTS + one.token, "intake", rubbish)
    await async_client().hdel(INCARNATIONS, one.token)
    (claimed,) = await JobReader(two.token).claim(two)
    assert claimed.job == wanted


def test_a_record_that_is_none_is_left_out_for_good_and_the_others_come(rubbish: bytes) -> None:
    reader = RecordReader()
    reader.read()  # which makes the group
    id = new_id()
    good = {"id": id, "kind": "started", "worker": "", "at": 1.0, "data": {}}
    for raw in (rubbish, json.dumps(good | {"id": 7}), json.dumps(good | {"data": []})):
        sync_client().xadd(RECORDS, {"r": raw})
    sync_client().xadd(RECORDS, {rubbish or b"x": "y"})
    sync_client().xadd(RECORDS, {"r": json.dumps(good)})
    [(entry, record)] = reader.read()
    assert record == good
    reader.ack([entry])
    assert sync_client().xlen(RECORDS) == 0


async def test_a_picture_that_cannot_be_read_is_that_of_no_worker(rubbish: bytes) -> None:
    await occupancy.put(picture(worker="whole"))
    broken: list[Any] = [rubbish, *(json.dumps(picture() | {name: 1}) for name in occupancy.PLACES)]
    for number, raw in enumerate(broken):
        await async_client().set(snapshot(f"w{number}"), raw)
        await async_client().sadd(WORKERS, f"w{number}")
    await async_client().sadd(WORKERS, rubbish)
    assert [found["worker"] for found in await occupancy.get_all()] == ["whole"]
    assert [found["worker"] for found in occupancy.get_all_sync()] == ["whole"]
    assert (await occupancy.overview()).alive


async def test_points_and_lanes_that_cannot_be_read_are_left_out(rubbish: bytes) -> None:
    sample = Sample(1.0, 5, 1, 2, 0, 0, 0.0, 0, 0.0)
    await async_client().sadd(WORKERS, "w1")
    for span, (_, length) in SPANS.items():
        places = dict.fromkeys(map(str, range(length)), rubbish)
        await async_client().hset(ring("w1", span), mapping=places)  # type: ignore[arg-type]
    await async_client().set(seen("w1"), rubbish)
    await async_client().xadd(lanes("w1"), {"c": rubbish})
    change = [1.0, 0, "idle", None, None]
    await series.write("w1", sample, [change])
    for span in SPANS:
        _, points = await series.points(span)
        assert len(points) == 1
    assert (await series.changes({}))["w1"][1] == [change]
    assert "w1" in await series.last_seen()


async def test_a_stream_that_cannot_be_read_is_none_that_can_be_taken_up(rubbish: bytes) -> None:
    id = new_id()
    await Publisher("w1").publish(numbered(id, told("a")))
    whole: dict[str, Any] = {"owner": "", "body": "", "shown_id": id, "model": "m", "created": 1}
    broken: list[dict[Any, Any]] = [
        {"owner": rubbish},
        whole | {"created": rubbish + b"x"},
        whole | {"goes_on_as": id},
    ]
    for fields in broken:
        await async_client().delete(stream(id))
        await async_client().hset(stream(id), mapping=fields)
        assert await streams.find(id, 1) is None


async def test_a_permit_that_cannot_be_read_costs_no_event(rubbish: bytes) -> None:
    id = new_id()
    await async_client().hset(PERMITS, id, rubbish + b" user:1")
    await async_client().hset(IN_FLIGHT, "user:1", rubbish)
    await Publisher("w1").publish([(id, 1, Token(1, "x")), (id, 2, END)], [id])
    assert [event for _, event in await log.read(id)] == [Token(1, "x"), END]


async def test_a_change_that_cannot_be_read_is_left_out(rubbish: bytes) -> None:
    await async_client().xadd(changes(1), {"chat": rubbish if rubbish != b"7" else b"x"})
    await async_client().xadd(changes(1), {rubbish or b"x": "y"})
    people.changed_sync(1, 12)
    assert (await people.since(1, people.NOTHING))[1] == [12]
