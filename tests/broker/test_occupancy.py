from __future__ import annotations

from channels.layers import get_channel_layer

from inference.broker import occupancy
from inference.broker.connect import async_client
from inference.broker.keys import snapshot

from .play import new_id, picture


async def test_a_worker_lives_as_long_as_its_picture():
    worker = new_id()
    shown = picture(worker=worker)
    await occupancy.put(shown)
    assert shown in await occupancy.get_all()
    assert 0 < await async_client().ttl(snapshot(worker)) <= occupancy.LIVES_S
    await async_client().delete(snapshot(worker))
    assert worker not in [found["worker"] for found in await occupancy.get_all()]


async def test_the_overview_names_each_generation_that_a_live_worker_has():
    slots = [{"generation": "a"}, {"generation": None}]
    await occupancy.put(picture(slots=slots, parked=[{"generation": "b"}], queue=[{"generation": "c"}]))
    found = await occupancy.overview()
    assert found.alive
    assert {"a", "b", "c"} <= found.generations


async def test_threads_see_the_same():
    shown = picture(worker=new_id())
    await occupancy.put(shown)
    assert shown in occupancy.get_all_sync()


async def test_the_monitors_are_told_of_the_last_picture_and_not_of_each():
    layer, worker = get_channel_layer(), new_id()
    channel = await layer.new_channel()
    await layer.group_add(occupancy.GROUP, channel)
    for used in range(200):
        await occupancy.put(picture(worker=worker, pool={"cells": 200, "used": used}))
    told, used = 0, 0
    while used != 199:
        assert await layer.receive(channel) == {"type": "occupancy.update"}
        told += 1
        used = next(p["pool"]["used"] for p in await occupancy.get_all() if p["worker"] == worker)
    assert told < 200
