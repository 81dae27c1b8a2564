"""Redis that dies is started again; what is under way goes on."""

from __future__ import annotations

import pytest

from .api import KNIGHT, Reply, body
from .stack import Stack

pytestmark = pytest.mark.model


def test_a_stream_goes_on_when_redis_was_killed(stack: Stack) -> None:
    request = body("/completion", KNIGHT, 120)
    whole = Reply(stack.port, "/completion", request).read()
    with Reply(stack.port, "/completion", request) as reply:
        for _ in range(5):
            reply.wait_for("data:")
        stack.kill("redis")
        assert reply.read().text == whole.text
    assert Reply(stack.port, "/completion", request).read().text == whole.text
    stack.wait_until_healthy()
