"""A bell that all web processes hear: somebody may have been shut out, so look now.

A process that misses it looks a little later anyway, so nothing depends on it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from .connect import AWAY, BLOCK_MS, LONGEST_WAIT, async_client, sync_client
from .keys import BELL


def ring() -> None:
    """For a thread. With Redis away nobody hears it."""
    with contextlib.suppress(*AWAY):
        sync_client().publish(BELL, "")


async def rings() -> AsyncIterator[None]:
    """Each ring from now on; never raises while Redis is away, when there are none."""
    while True:
        try:
            async with async_client().pubsub() as ear:
                await ear.subscribe(BELL)
                while True:
                    if await ear.get_message(ignore_subscribe_messages=True, timeout=BLOCK_MS / 1000):
                        yield
        except AWAY:
            await asyncio.sleep(LONGEST_WAIT)
