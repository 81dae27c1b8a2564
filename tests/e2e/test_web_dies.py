"""A web process that dies leaves no generation to nobody, and loses none."""

from __future__ import annotations

import contextlib
import http.client
import subprocess
from collections.abc import Iterator

import pytest

from .api import ENDPOINTS, KNIGHT, Reply, body, slots
from .stack import Stack


@pytest.fixture
def endless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Its chats never come to an end by themselves."""
    stack = Stack(tmp_path_factory.mktemp("endless"), **{"ctx-size": 256, "parallel": 2})
    stack.flags.append("--context-shift")
    stack.start()
    yield stack
    stack.stop()


@pytest.mark.parametrize("path", ENDPOINTS)
def test_a_client_that_comes_back_gets_the_rest_of_its_stream(path: str, stack: Stack) -> None:
    request = body(path, KNIGHT, 160, stream_options={"include_usage": True})
    whole = Reply(stack.port, path, request).read()
    first = Reply(stack.port, path, request)
    for _ in range(10):
        first.wait_for("data:")
    stack.kill("web")
    first.read_until_it_breaks()
    stack.wait_until_healthy()
    rest = Reply(stack.port, path, request, headers={"Last-Event-ID": first.last_id}).read()
    assert first.text + rest.text == whole.text
    assert len(first.objects) + len(rest.objects) == len(whole.objects)


def is_idle(stack: Stack) -> bool:
    with contextlib.suppress(OSError, http.client.HTTPException):
        return not any(slot["is_processing"] for slot in slots(stack))
    return False  # web is not back yet


def test_what_it_asked_for_is_cancelled_also_what_is_held(endless: Stack) -> None:
    reply = Reply(endless.port, "/completion", body("/completion", KNIGHT, -1))
    other = Reply(endless.port, "/completion", body("/completion", KNIGHT, -1))
    reply.wait_for("data:")
    other.wait_for("data:")
    assert Reply(endless.port, "/slots/0?action=park", method="POST").status == 200
    endless.kill("web")
    for _ in range(900):
        if is_idle(endless):
            break
        with contextlib.suppress(subprocess.TimeoutExpired):
            endless.process.wait(0.1)
    assert is_idle(endless)
