from __future__ import annotations

import asyncio

from inference.broker import hub as hub_module
from inference.broker import log
from inference.broker.connect import async_client
from inference.broker.control import Command, ControlReader
from inference.broker.hub import Follower, hub
from inference.broker.keys import event_log
from inference.broker.publisher import Publisher
from inference.messages import Event, Failed, Token
from inference.tasks import end

from .play import END, new_id, numbered, soon, told


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
    id, publisher = new_id(), Publisher("w1")
    async with hub().follow(id, fresh=True) as follower:
        await publisher.publish(numbered(id, told("a")))
        found = await follower.next(asyncio.get_running_loop().time())
        assert found == (1, told("a")[0])


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
        assert await follower.next(asyncio.get_running_loop().time() + 0.2) is None
        await end([flooding])
    assert published > 1


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
