from __future__ import annotations

import asyncio

import pytest

from inference.broker import connect, control, jobs, occupancy
from inference.broker.control import Command, ControlReader
from inference.broker.hub import hub
from inference.broker.job_reader import JobReader
from inference.broker.publisher import Publisher

from .play import END, job, new_id, numbered, picture, soon, told


async def until(read, wanted):
    while wanted not in (found := await read()):
        pass
    return found


async def test_readers_and_publisher_go_on_after_redis_was_killed(redis_server):
    id, wanted = new_id(), job()
    publisher, reader, ear = Publisher("w1"), JobReader(new_id()), ControlReader()
    publisher.route(id, hub().group)
    async with hub().follow(id, fresh=True) as follower:
        events = numbered(id, told("a", "b"))
        await publisher.publish(events[:1])
        assert await follower.next(soon()) == events[0][1:]
        waiting = [
            asyncio.create_task(until(reader.read, wanted)),
            asyncio.create_task(until(ear.read, Command("cancel", id))),
        ]
        redis_server.kill()
        publishing = asyncio.create_task(publisher.publish(events[1:]))
        assert await follower.next(asyncio.get_running_loop().time()) is None
        redis_server.start()
        await publishing
        await jobs.submit(wanted)
        await control.cancel(id)
        await asyncio.gather(*waiting)
        for _, seq, event in events[1:]:
            found = None
            while found is None:
                found = await follower.next(soon(0.2))
            assert found == (seq, event)
        assert event == END


async def test_a_follower_is_told_again_after_redis_was_killed(redis_server):
    first, second, publisher = new_id(), new_id(), Publisher("w1")
    publisher.route(first, hub().group)
    async with hub().follow(first, fresh=True) as follower:
        await publisher.publish(numbered(first, told("a"))[:1])
        assert await follower.next(soon())
        redis_server.kill()
        redis_server.start()
    async with hub().follow(second, fresh=True) as follower:
        seq = 0
        while not follower._heard:  # only a message tells it: nothing reads the log here
            seq += 1
            publisher.route(second, hub().group)
            await publisher.publish([(second, seq, told("a")[2])])
            await asyncio.sleep(0)


async def test_a_picture_that_cannot_be_shown_does_not_stop_the_worker(redis_server):
    redis_server.kill()
    await occupancy.put(picture(worker=new_id()))
    redis_server.start()
    worker = new_id()
    await occupancy.put(picture(worker=worker))
    assert worker in [found["worker"] for found in await occupancy.get_all()]


async def test_an_answer_that_came_too_late_is_not_taken_for_the_next_one(monkeypatch):
    echo = connect.Script("return ARGV[1]")
    assert await echo.run([], ["first"]) == b"first"
    monkeypatch.setattr(connect, "SOCKET_TIMEOUT", 0.1)
    await connect.async_client().client_pause(60_000, all=False)  # scripts wait, other commands do not
    with pytest.raises(connect.AWAY):
        await echo.run([], ["late"])
    monkeypatch.undo()
    await connect.async_client().client_unpause()
    assert await echo.run([], ["next"]) == b"next"
