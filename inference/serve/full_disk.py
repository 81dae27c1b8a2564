"""The embedded Redis while nothing can be written to its disk: it goes on in memory alone.

A Redis that cannot write its file refuses every write, which would stop all that runs. That answers go on is
worth more than that what is under way survives Redis' death: one that dies meanwhile comes back without its
data, which workers and web processes know how to mend.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from pathlib import Path
from typing import Any

import redis
import redis.asyncio

from inference.broker.connect import redis_url

from .child import say

LOOK_EVERY = 1.0  # seconds
SPARE = 4 << 20  # bytes that are free beside what Redis will write, before it is trusted with the disk again


async def watch(data_dir: Path) -> None:
    """Look after the embedded server of this data directory for ever. A Redis that is away is no business of
    ours."""
    async with redis.asyncio.Redis.from_url(redis_url(), socket_timeout=5) as client:
        while True:
            with contextlib.suppress(redis.RedisError, OSError):
                await look(client, data_dir)
            await asyncio.sleep(LOOK_EVERY)


async def look(client: Any, data_dir: Path) -> None:
    """Once. Raises RedisError or OSError."""
    found = await client.info("persistence")
    if found["aof_enabled"] and found["aof_last_write_status"] != "ok":
        await client.config_set("appendonly", "no")
        for file in (data_dir / "redis").glob("*/*"):  # what it holds is the past, and takes room
            file.unlink(missing_ok=True)
        say("serve", f"the disk of {data_dir} is full: Redis goes on in memory alone; make room")
    elif not found["aof_enabled"]:
        needed = (await client.info("memory"))["used_memory"] + SPARE
        if shutil.disk_usage(data_dir).free > needed:
            await client.config_set("appendonly", "yes")
            say("serve", f"the disk of {data_dir} has room again: what Redis holds is written there")
