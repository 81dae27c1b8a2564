"""Ending asyncio tasks for certain."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any


async def end(tasks: Collection[asyncio.Task[Any]], again_s: float = 0.5) -> None:
    """Cancel tasks, every `again_s` seconds, until each has ended; results and errors stay in them.

    Once is not enough: before Python 3.12 `asyncio.wait_for`, which redis-py uses, swallows a
    cancellation that arrives together with its result, and a loop around it would go on for ever.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=again_s)


def heed() -> None:
    """Raise the cancellation of the running task that something it awaited has swallowed (see `end`): before
    a wait for what may never come."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
