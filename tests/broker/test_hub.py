from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace

import pytest
from channels.layers import get_channel_layer

from inference.broker import control, log
from inference.broker import hub as hub_module
from inference.broker.connect import async_client
from inference.broker.control import Command, ControlReader
from inference.broker.hub import Crowded, Follower, hub
from inference.broker.keys import event_log
from inference.broker.lease import Lease
from inference.broker.publisher import Publisher
from inference.messages import Event, Failed, Token
from inference.tasks import end

from .play import END, new_id, numbered, soon, told


@pytest.fixture(autouse=True)
def looks_often(monkeypatch) -> None:
    monkeypatch.setattr(hub_module, "LOOK_EVERY_S", 0.02)


async def all_of(follower: Follower) -> list[Event]:
    events: list[Event] = []
    while not events or events[-1] != END:
        found = await follower.next(soon())
        assert found is not None
        assert found[0] == len(events) + 1
        events.append(found[1])
    return events


async def test_events_arrive_in_order_and_once():
    id, publisher = new_id(), Publisher("w1")
    publisher.route(id, hub().group)
    async with hub().follow(id, fresh=True) as follower:
        for one in numbered(id, told("a", "b")):
            await publisher.publish([one])
        assert await all_of(follower) == told("a", "b")


async def test_a_message_that_comes_twice_is_heard_once():
    id, publisher = new_id(), Publisher("w1")
    events = numbered(id, told("a", "b"))
    async with hub().follow(id, fresh=True) as follower:
        for part in (events[:2], events[:3], events[1:]):
            publisher.route(id, hub().group)
            await publisher.publish(part)
        assert await all_of(follower) == told("a", "b")


async def test_a_lost_message_is_read_from_the_log_when_the_next_one_comes():
    id, publisher = new_id(), Publisher("w1")
    events = numbered(id, told("a", "b"))
    async with hub().follow(id, fresh=True) as follower:
        await publisher.publish(events[:3])  # no route: nobody is told
        publisher.route(id, hub().group)
        await publisher.publish(events[3:])
        assert await all_of(follower) == told("a", "b")


async def test_a_lost_message_costs_at_most_one_silence():
    one, two, publisher = new_id(), new_id(), Publisher("w1")
    async with hub().follow(one, fresh=True) as follower, hub().follow(two, fresh=True) as other:
        waiting = asyncio.create_task(other.next(soon(1000)))
        await publisher.publish(numbered(one, told("a")))  # no route: nobody is told
        assert await follower.next(soon()) == (1, told("a")[0])
        await publisher.publish(numbered(two, told("b")))
        assert await waiting == (1, told("b")[0])


async def test_a_deadline_does_not_wait_for_redis(redis_server):
    async with hub().follow(new_id(), fresh=True) as follower:
        os.kill(redis_server.process.pid, signal.SIGSTOP)
        try:
            assert await follower.next(soon(0.01)) is None
        finally:
            os.kill(redis_server.process.pid, signal.SIGCONT)


async def test_a_late_follower_hears_everything_from_the_log():
    id = new_id()
    await Publisher("w1").publish(numbered(id, told("a", "b")))
    async with hub().follow(id) as follower:
        assert await all_of(follower) == told("a", "b")


async def test_a_follower_goes_on_after_the_number_it_names():
    id = new_id()
    await Publisher("w1").publish(numbered(id, told("a", "b")))
    async with hub().follow(id, after=4) as follower:
        assert await follower.next(soon()) == (5, END)


async def test_a_late_follower_asks_the_workers_to_be_told():
    id, control = new_id(), ControlReader()
    async with hub().follow(id):
        commands = await control.read()
        assert Command("follow", id, hub().group) in commands


async def test_a_deadline_stands_under_a_flood_of_events_of_others():
    mine, other, publisher = new_id(), new_id(), Publisher("w1")
    publisher.route(other, hub().group)
    published = 0

    async def flood() -> None:
        nonlocal published
        while True:
            published += 1
            await publisher.publish([(other, published, Token(1, "x"))])

    async with hub().follow(mine, fresh=True) as follower:
        flooding = asyncio.create_task(flood())
        before = published
        while published < before + 2:  # on a busy machine a whole wait can see less of a flood
            before = published
            assert await follower.next(soon(0.2)) is None
        await end([flooding])


async def test_what_does_not_fit_the_queue_is_read_from_the_log(monkeypatch):
    monkeypatch.setattr(hub_module, "MAX_QUEUED", 3)
    monkeypatch.setattr(hub_module, "LOG_BATCH", 2)
    id, publisher = new_id(), Publisher("w1")
    publisher.route(id, hub().group)
    texts = [str(i) for i in range(20)]
    async with hub().follow(id, fresh=True) as follower:
        await publisher.publish(numbered(id, told(*texts)))
        assert await all_of(follower) == told(*texts)


async def test_events_that_are_lost_for_good_fail_the_generation():
    id, publisher = new_id(), Publisher("w1")
    events = numbered(id, told("a", "b"))
    async with hub().follow(id, fresh=True) as follower:
        await publisher.publish(events[:3])
        await async_client().delete(event_log(id))
        publisher.route(id, hub().group)
        await publisher.publish(events[3:])
        found = await follower.next(soon())
        assert found is not None
        assert isinstance(found[1], Failed)
        assert found[1].status == 500


async def test_an_event_published_twice_does_not_fail_the_others():
    one, two, publisher = new_id(), new_id(), Publisher("w1")
    await publisher.publish(numbered(one, told("a")))
    await publisher.publish([*numbered(one, told("a")), *numbered(two, told("b"))])
    assert [event for _, event in await log.read(one)] == told("a")
    assert [event for _, event in await log.read(two)] == told("b")


async def test_a_log_is_kept_for_a_day_until_its_generation_is_written_down():
    id, publisher = new_id(), Publisher("w1")
    await publisher.publish(numbered(id, told("a"))[:2])
    await publisher.publish([(id, 3, END)])
    assert log.KEEP_RECORDED_S < await async_client().ttl(event_log(id)) <= log.KEEP_S


async def test_a_log_is_kept_for_as_long_as_its_generation_is_not_over():
    id, publisher = new_id(), Publisher("w1", await Lease.acquire(new_id()))
    events = numbered(id, told("a"))
    await publisher.publish(events[:2])
    await async_client().expire(event_log(id), 9)
    await publisher.keep()
    assert await async_client().ttl(event_log(id)) > 9
    await publisher.publish(events[2:])
    await async_client().expire(event_log(id), 9)
    await publisher.keep()
    assert await async_client().ttl(event_log(id)) <= 9


async def test_what_is_published_together_is_one_entry_of_the_log_and_one_message():
    one, two, publisher = new_id(), new_id(), Publisher("w1")
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add("somebody", channel)
    for id in (one, two):
        publisher.route(id, "somebody")
    await publisher.publish([*numbered(one, told("a", "b")), *numbered(two, told("c"))])
    message = await layer.receive(channel)
    assert [(id, last, len(events)) for id, last, events in message["events"]] == [(one, 5, 5), (two, 4, 4)]
    assert await async_client().xlen(event_log(one)) == 1
    assert [event for _, event in await log.read(one)] == told("a", "b")


async def test_nobody_hears_of_an_event_that_is_not_in_the_log():
    id, publisher = new_id(), Publisher("w1")
    publisher.route(id, hub().group)
    async with hub().follow(id, fresh=True) as follower:
        for one in numbered(id, told("a", "b")):
            publishing = asyncio.create_task(publisher.publish([one]))
            found = await follower.next(soon())
            assert found is not None
            assert (await log.read(id))[-1] == found
            await publishing


async def test_the_log_is_read_on_from_the_middle_of_an_entry():
    id, publisher = new_id(), Publisher("w1")
    events = numbered(id, told("a", "b"))
    for part in (events[:3], events[3:]):
        await publisher.publish(part)
    for after in range(6):
        assert await log.read(id, after) == [(seq, event) for _, seq, event in events[after:]]
        async with hub().follow(id, after) as follower:
            for _, seq, event in events[after:]:
                assert await follower.next(soon()) == (seq, event)


async def test_entries_that_overlap_are_read_as_each_event_once():
    id, publisher = new_id(), Publisher("w1")
    events = numbered(id, told("a", "b"))
    for part in (events[:2], events[:3], events[1:]):
        await publisher.publish(part)
    assert [event for _, event in await log.read(id)] == told("a", "b")
    assert await log.last(id) == 5


async def test_what_has_come_is_there_without_waiting():
    id, publisher = new_id(), Publisher("w1")
    publisher.route(id, hub().group)
    async with hub().follow(id, fresh=True) as follower:
        assert follower.ready() is None
        await publisher.publish(numbered(id, told("a")))
        heard = [await follower.next(soon())]
        while found := follower.ready():
            heard.append(found)
        assert [found and found[1] for found in heard] == told("a")


async def test_a_follower_that_nobody_tells_asks_again():
    id, publisher, commands = new_id(), Publisher("w1"), control.ControlReader()
    async with hub().follow(id, fresh=True) as follower:
        await publisher.publish(numbered(id, told("a")))  # by a worker that does not know of it
        assert await follower.next(soon()) == (1, told("a")[0])
        assert Command("follow", id, hub().group) in await commands.read()


async def test_a_generation_has_so_many_followers_and_no_more(settings):
    settings.BERTH = replace(settings.BERTH, max_followers=2)
    id = new_id()
    async with hub().follow(id, fresh=True):
        async with hub().follow(id, fresh=True):
            with pytest.raises(Crowded):
                await hub().follow(id, fresh=True).__aenter__()
        async with hub().follow(id, fresh=True), hub().follow(new_id(), fresh=True):
            pass


async def test_a_follower_holds_few_events_for_a_slow_reader():
    id, publisher = new_id(), Publisher("w1")
    publisher.route(id, hub().group)
    texts = [str(i) for i in range(100)]
    async with hub().follow(id, fresh=True, max_queued=5) as follower:
        await publisher.publish(numbered(id, told(*texts)))
        assert await follower.next(soon()) == (1, told()[0])
        assert len(follower._queue) == 4
        assert [await follower.next(soon()) for _ in told(*texts)[1:]][-1] == (103, END)


async def test_a_deadline_stands_after_a_wait_for_a_later_one():
    id, publisher = new_id(), Publisher("w1")
    publisher.route(id, hub().group)
    async with hub().follow(id, fresh=True) as follower:
        waiting = asyncio.create_task(follower.next(soon(1000)))
        await publisher.publish(numbered(id, told("a"))[:1])
        assert await waiting == (1, told("a")[0])
        assert await follower.next(soon(0.1)) is None


async def test_a_publisher_goes_on_when_redis_has_forgotten_its_script():
    id, publisher = new_id(), Publisher("w1")
    events = numbered(id, told("a"))
    await publisher.publish(events[:1])
    await async_client().script_flush()
    await publisher.publish(events[1:])
    assert [event for _, event in await log.read(id)] == told("a")


async def test_a_log_that_cannot_be_written_stops_no_other_and_its_followers_are_told(caplog):
    broken, whole, publisher = new_id(), new_id(), Publisher("w1")
    publisher.route(broken, hub().group)
    await async_client().set(event_log(broken), "no stream")
    async with hub().follow(broken, fresh=True) as follower:
        await publisher.publish([*numbered(broken, told("a")), *numbered(whole, told("b"))])
        assert await follower.next(soon()) == (1, told("a")[0])
    assert [event for _, event in await log.read(whole)] == told("b")
    assert "could not be written" in caplog.text
