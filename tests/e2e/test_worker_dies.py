"""A worker that dies is a park, on the real stack: nobody's text changes, and no stream ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from .api import ENDPOINTS, KNIGHT, Reply, body, without_ids_and_times
from .stack import Stack

pytestmark = pytest.mark.model

N_TOKENS = 40
SAMPLED = {"temperature": 0.9, "repeat_penalty": 1.2, "seed": 7}


def data(reply: Reply) -> list[str]:
    return [without_ids_and_times(line) for line in reply.lines if line.startswith("data:")]


def request(path: str, **fields: Any) -> dict[str, Any]:
    return body(path, KNIGHT, N_TOKENS, **SAMPLED, **fields)


class Killed(NamedTuple):
    """The same requests without and with a worker that dies in the middle of all of them."""

    whole: dict[str, Reply]
    cut: dict[str, Reply]
    answer: dict[str, Any]  # without streaming


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Killed]:
    stack = Stack(tmp_path_factory.mktemp("killed"), **{"ctx-size": 1024, "parallel": 4})
    stack.flags.append("--exact")  # text depends on the request alone
    stack.start()
    try:
        usage = {"stream_options": {"include_usage": True}}
        whole = {path: Reply(stack.port, path, request(path, **usage)).read() for path in ENDPOINTS}
        answers: list[Any] = []
        ask = {**request("/completion"), "stream": False}
        asking = threading.Thread(target=lambda: answers.append(Reply(stack.port, "/completion", ask).json()))
        asking.start()
        cut = {path: Reply(stack.port, path, request(path, **usage)) for path in ENDPOINTS}
        for reply in cut.values():
            reply.wait_for("data:")
        stack.kill("worker")
        for reply in cut.values():
            reply.read()
        asking.join()
        yield Killed(whole, cut, answers[0])
    finally:
        stack.stop()


@pytest.mark.parametrize("path", ENDPOINTS)
def test_a_stream_is_what_it_would_have_been_and_tells_of_a_park(path: str, killed: Killed) -> None:
    assert killed.whole[path].notices == []
    assert killed.cut[path].notices == [": preempted", ": resumed"]
    assert data(killed.cut[path]) == data(killed.whole[path])


def test_so_is_an_answer_that_is_not_streamed(killed: Killed) -> None:
    assert killed.answer["content"] == killed.whole["/completion"].text
    assert killed.answer["tokens_predicted"] == killed.answer["timings"]["predicted_n"] == N_TOKENS
