"""A web process that dies leaves no generation to nobody."""

from __future__ import annotations

import contextlib
import http.client
import subprocess

from .api import KNIGHT, Reply, body, is_idle, until
from .stack import Stack


def hold_one(stack: Stack) -> bool:
    return any(
        Reply(stack.port, f"/slots/{slot}?action=park", method="POST").status == 200 for slot in range(2)
    )


def is_idle_again(stack: Stack) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        return is_idle(stack)
    with contextlib.suppress(subprocess.TimeoutExpired):  # web is not back yet
        stack.process.wait(0.1)
    return False


def test_what_it_asked_for_is_cancelled_also_what_is_held(endless: Stack) -> None:
    streams = [Reply(endless.port, "/completion", body("/completion", KNIGHT, -1)) for _ in range(2)]
    for stream in streams:
        stream.wait_for("data:")
    until(lambda: hold_one(endless))  # not one that is just on its way out or back
    endless.kill("web")
    until(lambda: is_idle_again(endless))
