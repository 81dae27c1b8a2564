from __future__ import annotations

from inference.broker.hub import hub
from inference.broker.listeners import LOOKS, Listeners

from .play import new_id


async def test_jobs_are_deserted_once_nobody_has_listened_for_several_looks():
    await hub().listen()
    listeners = Listeners()
    listeners.add("alive", hub().group)
    listeners.add("orphan", f"web.{new_id()}")
    for _ in range(LOOKS - 1):
        assert await listeners.deserted() == []
    assert await listeners.deserted() == ["orphan"]
    listeners.discard("orphan")
    assert await listeners.deserted() == []


async def test_one_that_listens_again_in_time_has_lost_nothing():
    listeners = Listeners()
    listeners.add("job", hub().group)
    for _ in range(LOOKS - 1):
        assert await listeners.deserted() == []
    await hub().listen()
    for _ in range(LOOKS):
        assert await listeners.deserted() == []
