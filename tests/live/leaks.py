"""That nothing is left of what was asked of a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.e2e.api import Reply, slots, wait_until_idle
from tests.e2e.stack import Stack


@contextmanager
def nothing_is_left(stack: Stack) -> Iterator[None]:
    """Afterwards the slots are idle, nobody is parked, no RAM is held, and the worker is the same one."""
    before = _worker(stack)
    yield
    wait_until_idle(stack)
    assert _worker(stack) == before
    assert {slot["n_cells"] for slot in slots(stack)} == {0}
    figures = metrics(stack)
    assert {figures[name] for name in ("requests_processing", "requests_deferred", "requests_preempted")} == {
        0
    }
    assert figures["preempt_ram_bytes"] == figures["preempt_ram_kept_bytes"] == 0


def _worker(stack: Stack) -> Any:
    """Since when it has been there."""
    return Reply(stack.port, "/v1/models").json()["data"][0]["created"]


def metrics(stack: Stack) -> dict[str, float]:
    lines = Reply(stack.port, "/metrics").read().lines
    pairs = (line.removeprefix("llamacpp:").split() for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs if "{" not in name}
