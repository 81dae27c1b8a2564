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


async def test_a_job_is_not_deserted_while_somebody_else_follows_it():
    await hub().listen()
    listeners = Listeners()
    listeners.add("job", f"web.{new_id()}")
    listeners.also("job", hub().group)
    listeners.also("chat", hub().group)  # it was to run on without a listener
    for _ in range(LOOKS):
        assert await listeners.deserted() == []


async def test_one_that_listens_again_in_time_has_lost_nothing():
    listeners = Listeners()
    listeners.add("job", hub().group)
    for _ in range(LOOKS - 1):
        assert await listeners.deserted() == []
    await hub().listen()
    for _ in range(LOOKS):
        assert await listeners.deserted() == []
