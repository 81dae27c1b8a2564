"""A worker that dies is a park, on the real stack: nobody's text changes, and no stream ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from .api import ENDPOINTS, FOX, KNIGHT, Reply, body, without_ids_and_times
from .stack import Stack

pytestmark = pytest.mark.model

SAMPLED = {"temperature": 0.9, "repeat_penalty": 1.2, "seed": 7}


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Text depends on the request alone."""
    stack = Stack(tmp_path_factory.mktemp("killed"), **{"ctx-size": 256, "parallel": 2})
    stack.flags.append("--exact")
    stack.start()
    yield stack
    stack.stop()


def data(reply: Reply) -> list[str]:
    return [without_ids_and_times(line) for line in reply.lines if line.startswith("data:")]


@pytest.mark.parametrize("path", ENDPOINTS)
def test_the_body_is_what_it_would_have_been(path: str, exact: Stack) -> None:
    request = body(path, KNIGHT, 60, **SAMPLED, stream_options={"include_usage": True})
    whole = Reply(exact.port, path, request).read()
    assert whole.notices == []
    with Reply(exact.port, path, request) as reply:
        reply.wait_for("data:")
        exact.kill("worker")
        reply.read()
        assert reply.notices == [": preempted", ": resumed"]
        assert data(reply) == data(whole)


def test_so_is_one_that_is_not_streamed(exact: Stack) -> None:
    request = body("/completion", KNIGHT, 60, **SAMPLED)
    whole = Reply(exact.port, "/completion", request).read()
    answers: list[Any] = []
    with Reply(exact.port, "/completion", request) as witness:
        asking = threading.Thread(
            target=lambda: answers.append(
                Reply(exact.port, "/completion", {**request, "stream": False}).json()
            )
        )
        asking.start()
        witness.wait_for("data:")
        exact.kill("worker")
        asking.join()
        assert answers[0]["content"] == whole.text
        assert answers[0]["tokens_predicted"] == 60
        assert answers[0]["timings"]["predicted_n"] == 60


def test_and_so_is_each_choice_of_several(exact: Stack) -> None:
    request = body("/completion", [KNIGHT, FOX, KNIGHT], 40)
    whole = Reply(exact.port, "/completion", request).read()
    with Reply(exact.port, "/completion", request) as reply:
        reply.wait_for("data:")
        exact.kill("worker")
        reply.read()
        for index in range(3):
            said = [
                [chunk["content"] for chunk in r.objects if chunk["index"] == index] for r in (whole, reply)
            ]
            assert said[0] == said[1]
        assert not any("error" in chunk for chunk in reply.objects)
        assert reply.notices.count(": preempted 0") == reply.notices.count(": resumed 0") == 1
