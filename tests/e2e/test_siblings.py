"""Several prompts and n > 1 on the real stack: one stream of several generations, parked or not."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from inference.broker.keys import JOBS

from .api import ENDPOINTS, FOX, KNIGHT, Reply, body, slots, until, wait_until_idle, without_ids_and_times
from .stack import Stack

pytestmark = pytest.mark.model

PROMPTS = [KNIGHT, [1, 2, 3]]
N_TOKENS = 12
N = 4


def request(path: str, **fields: Any) -> dict[str, Any]:
    """Four choices: of two prompts, where the endpoint takes several."""
    prompt, n = (KNIGHT, N) if "chat" in path else (PROMPTS, 2)
    return body(path, prompt, N_TOKENS, n=n, **fields)


def alone(path: str, index: int, **fields: Any) -> dict[str, Any]:
    """The request for one choice that choice `index` is like."""
    prompt, k = (KNIGHT, index) if "chat" in path else (PROMPTS[index // 2], index % 2)
    return body(path, prompt, N_TOKENS, seed=42 + k, **fields)


def index_of(chunk: dict[str, Any]) -> int:
    """Whose chunk this is; -1: of the stream as a whole."""
    if "choices" not in chunk:
        return int(chunk["index"])
    return int(chunk["choices"][0]["index"]) if chunk["choices"] else -1


def lines_by_choice(reply: Reply) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    data = [line for line in reply.lines if line.startswith("data: {")]
    for chunk, line in zip(reply.objects, data, strict=True):
        index = index_of(chunk)
        line = without_ids_and_times(line).replace(f'"index":{index}', '"index":0')
        found.setdefault(index, []).append(line)
    return found


@pytest.mark.parametrize(("path", "temperature"), [(path, 0) for path in ENDPOINTS] + [("/completion", 0.9)])
def test_each_choice_is_with_parks_what_it_is_alone_without(
    path: str, temperature: float, stack: Stack, parking_stack: Stack
) -> None:
    wait_until_idle(stack)  # a neighbour could change the text
    parked = Reply(parking_stack.port, path, request(path, temperature=temperature)).read()
    found = lines_by_choice(parked)
    for index in range(N):
        notices = [line for line in parked.notices if line.endswith(f" {index}")]
        assert notices == [f": preempted {index}", f": resumed {index}"]
        single = Reply(stack.port, path, alone(path, index, temperature=temperature)).read()
        assert single.notices == []
        assert single.status == 200
        assert found.pop(index) == lines_by_choice(single)[0]
    assert not found
    assert len(parked.notices) == 2 * N
    assert parked.lines[-1] == ("data: [DONE]" if "/v1/" in path else parked.lines[-1])
    assert parked.lines.count("data: [DONE]") == ("/v1/" in path)


@pytest.mark.parametrize("path", ENDPOINTS)
def test_the_body_without_streaming_has_the_streams_text(path: str, parking_stack: Stack) -> None:
    streamed = Reply(parking_stack.port, path, request(path)).read()
    said = ["".join(shown(chunk) for chunk in streamed.objects if index_of(chunk) == i) for i in range(N)]
    answer = Reply(parking_stack.port, path, request(path, stream=False)).json()
    choices = answer["choices"] if "/v1/" in path else answer
    assert [choice["index"] for choice in choices] == list(range(N))
    assert [shown({"choices": [c]} if "/v1/" in path else c) for c in choices] == said
    if "/v1/" in path:
        n_prompts = 1 if "chat" in path else 2
        alone_tokens = [
            Reply(parking_stack.port, path, alone(path, 2 * i, stream=False)).json()["usage"]["prompt_tokens"]
            for i in range(n_prompts)
        ]
        assert answer["usage"]["prompt_tokens"] == sum(alone_tokens)
        assert answer["usage"]["completion_tokens"] == N * N_TOKENS


def shown(chunk: dict[str, Any]) -> str:
    if "content" in chunk:
        return str(chunk["content"])
    choice = chunk["choices"][0]
    part = choice.get("message") or choice.get("delta") or {}
    return part.get("content") or choice.get("text") or ""


def test_seeded_choices_of_a_prompt_differ(stack: Stack) -> None:
    answer = Reply(
        stack.port, "/v1/completions", body("/v1/completions", KNIGHT, 24, n=3, temperature=1.5, stream=False)
    )
    assert len({choice["text"] for choice in answer.json()["choices"]}) == 3


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("path", ["/completion", "/v1/completions"])
def test_one_oversized_prompt_refuses_all_before_the_stream_opens(
    path: str, stream: bool, stack: Stack
) -> None:
    reply = Reply(stack.port, path, body(path, [KNIGHT, FOX, "word " * 600], 8, stream=stream))
    assert reply.status == 400
    assert reply.headers["content-type"].startswith("application/json")
    error = reply.json()["error"]
    assert error["message"].startswith("prompt 2: ")
    assert error["n_ctx"] == 512
    assert not any(slot["is_processing"] for slot in slots(stack))


def test_a_client_that_leaves_frees_all_its_choices_in_every_state(endless: Stack) -> None:
    long = " ".join([FOX] * 25)
    with Reply(endless.port, "/completion", body("/completion", [long] * 5, -1)) as reply:
        reply.wait_for("data:")
        reply.wait_for(": preempted")
    wait_until_idle(endless)
    again = Reply(endless.port, "/completion", body("/completion", KNIGHT, 4)).read()
    assert again.objects[-1]["tokens_predicted"] == 4


def test_of_a_request_that_is_over_or_refused_no_job_is_left(stack: Stack) -> None:
    url = stack.data_dir / "redis.url"
    address = url.read_text().strip() if url.exists() else f"unix://{stack.data_dir}/redis.sock"
    Reply(stack.port, "/completion", body("/completion", PROMPTS, 2)).read()
    Reply(stack.port, "/completion", body("/completion", [KNIGHT, "word " * 600], 2)).read()
    with redis.Redis.from_url(address) as client:
        until(
            lambda: client.xlen(JOBS) == 0
        )  # the worker closes its books a moment after it has told the client
