"""A web process that dies leaves no generation to nobody, and loses none."""

from __future__ import annotations

import contextlib
import http.client
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from .api import FOX, KNIGHT, Reply, body, slots, wait_until_idle
from .stack import Stack


@pytest.fixture
def endless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Its chats never come to an end by themselves."""
    stack = Stack(tmp_path_factory.mktemp("endless"), **{"ctx-size": 256, "parallel": 2})
    stack.flags.append("--context-shift")
    stack.start()
    yield stack
    stack.stop()


def test_a_client_that_comes_back_gets_the_rest_of_its_stream(stack: Stack) -> None:
    path = "/v1/chat/completions"
    request = body(path, KNIGHT, 120, stream_options={"include_usage": True})
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


@pytest.mark.parametrize("path", ["/completion", "/v1/completions"])
def test_what_was_cancelled_when_its_client_left_goes_on_with_the_same_text(path: str, stack: Stack) -> None:
    prompt = KNIGHT if path == "/completion" else [KNIGHT, FOX]
    request = body(
        path, prompt, 60, temperature=0.9, repeat_penalty=1.2, stream_options={"include_usage": True}
    )
    whole = Reply(stack.port, path, request).read()
    with Reply(stack.port, path, request) as first:
        for _ in range(20):
            first.wait_for("data:")
    wait_until_idle(stack)
    rest = Reply(stack.port, path, request, headers={"Last-Event-ID": first.last_id}).read()
    assert ": resumed" in {line[:9] for line in rest.lines}
    said, again = texts(first.objects + rest.objects), texts(whole.objects)
    assert said == again
    assert len(first.objects) + len(rest.objects) == len(whole.objects)


def texts(chunks: list[dict[str, Any]]) -> dict[int, str]:
    """What each choice says."""
    said: dict[int, str] = {}
    for chunk in chunks:
        for choice in chunk.get("choices", [chunk]):
            text = choice["content"] if "content" in choice else choice["text"]
            said[choice["index"]] = said.get(choice["index"], "") + text
    return said


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
