from __future__ import annotations

from threading import current_thread

import pytest

from inference import stream
from inference.broker.connect import async_client
from inference.broker.control import cancelled
from inference.broker.keys import snapshot
from inference.consumers import ChatCompletions, Completion
from inference.messages import (
    Accepted,
    Failed,
    Finished,
    GenerationRequest,
    Preempted,
    Resumed,
    Started,
    Timings,
    Token,
)
from inference.wire.llamacpp import COMPLETION
from tests.broker.play import END, told

from .play import Client, Worker, fetch, working

CHAT = {"model": "x", "messages": [{"role": "user", "content": "hi"}], "stream": True}
PLAIN = {"prompt": "hi", "stream": True}
PARK = Preempted(0, "pressure", 5, 50)
NEVER = 3600.0  # s
TOO_LONG = Failed(400, "exceed_context_size_error", "the prompt is too long", {"n_ctx": 64})


def completion(**intervals: float) -> object:
    """The endpoint with other intervals."""

    class Quick(Completion):
        pass

    for name, value in intervals.items():
        setattr(Quick, name, value)
    return Quick.as_asgi()


async def some_intervals(worker: Worker) -> None:
    """As long as a parked neighbour takes to hear three keepalives."""
    clock = Client("POST", "/completion", PLAIN, completion(parked_every=0.02))
    await worker.says(await worker.takes(), Accepted(3, 1, 9), PARK)
    await clock.hears(": preempt-keepalive", 3)
    await clock.leaves()


@pytest.mark.parametrize("prompt", [[1, 2], [*range(2**18 - 2)]])
async def test_a_long_body_is_read_beside_the_event_loop_and_reaches_the_worker_whole(prompt, monkeypatch):
    parse, threads = COMPLETION.parse, []

    def noted(*args):
        threads.append(current_thread())
        return parse(*args)

    monkeypatch.setattr(COMPLETION, "parse", noted)
    async with working() as worker:
        client = Client("POST", "/completion", {"prompt": prompt})
        job = await worker.takes()
        await worker.says(job, *told("a"))
        await client.ends()
    assert GenerationRequest.from_dict(job.body).prompt == tuple(prompt)
    assert client.json["prompt"] == prompt
    assert (threads == [current_thread()]) == (len(prompt) == 2)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/chat/completions"])
async def test_a_chat_streams_its_text(path):
    async with working() as worker:
        client = Client("POST", path, CHAT)
        job = await worker.takes()
        await worker.says(job, *told("Hel", "lo"))
        await client.ends()
    assert client.status == 200
    assert client.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert client.headers["cache-control"] == "no-cache"
    assert client.headers["x-accel-buffering"] == "no"
    said = [choice["delta"].get("content") or "" for chunk in client.chunks for choice in chunk["choices"]]
    assert "".join(said) == "Hello"
    assert client.body.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("path", ["/completion", "/completions", "/v1/completions"])
async def test_a_completion_streams_its_text(path):
    async with working() as worker:
        client = Client("POST", path, PLAIN)
        job = await worker.takes()
        await worker.says(job, *told("Hel", "lo"))
        await client.ends()
    said = [c.get("content") or "".join(x["text"] for x in c.get("choices", ())) for c in client.chunks]
    assert "".join(said) == "Hello"


async def test_the_worker_gets_the_request_that_was_made(options):
    options(temp=0.3, n_predict=7)
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN)
        job = await worker.takes()
        request = GenerationRequest.from_dict(job.body)
        assert (request.prompt, request.stream) == ("hi", True)
        assert (request.sampling.temperature, request.max_tokens) == (0.3, 7)
        await worker.says(job, END)
        await client.ends()


async def test_without_streaming_there_is_one_body_and_nothing_of_parks():
    async with working() as worker:
        client = Client("POST", "/v1/chat/completions", CHAT | {"stream": False})
        job = await worker.takes()
        accepted, started, *rest = told("Hel", "lo")
        await worker.says(job, accepted, started, PARK, Resumed(0, 0.1), *rest)
        await client.ends()
    assert client.status == 200
    assert client.headers["content-type"].startswith("application/json")
    assert client.json["choices"][0]["message"]["content"] == "Hello"
    assert client.json["usage"]["completion_tokens"] == 2
    assert b"preempt" not in client.body


async def test_the_stream_opens_with_the_first_byte(options):
    options(sse_ping_interval=-1)
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN)
        job = await worker.takes()
        await worker.says(job, Accepted(3, 1, 9), Started(0), Token(1, ""))
        assert client.status == 0
        await worker.says(job, Token(2, "x"))
        await client.hears("x")
        assert client.status == 200
        await client.leaves()


@pytest.mark.parametrize("stream", [True, False])
async def test_a_prompt_that_is_refused_is_a_plain_400(stream):
    async with working() as worker:
        client = Client("POST", "/v1/chat/completions", CHAT | {"stream": stream})
        await worker.says(await worker.takes(), TOO_LONG)
        await client.ends()
    assert client.status == 400
    assert client.json["error"]["code"] == "context_length_exceeded"


async def test_a_failure_in_an_open_stream_is_told_inside_it():
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN)
        job = await worker.takes()
        await worker.says(job, *told("Hel")[:3], Failed(500, "server_error", "it broke"))
        await client.ends()
    assert client.status == 200
    assert client.chunks[-1]["error"]["message"] == "it broke"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "not JSON"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b"[1]", "must be a JSON object"),
        (b"", "not JSON"),
        (b"[" * 100_000, "JSON|nested"),
        ({"messages": []}, "messages"),
        (CHAT | {"temperature": "hot"}, "temperature"),
    ],
)
async def test_a_malformed_request_is_a_400_before_anything_is_asked_of_a_worker(body, message):
    client = await fetch("POST", "/v1/chat/completions", body)
    assert client.status == 400
    assert any(part in client.json["error"]["message"] for part in message.split("|"))
    assert client.json["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("events", [[], told()[:1], told()[:2], told("x")[:3], [told()[0], PARK]])
async def test_a_client_that_leaves_cancels_its_generation_in_every_state(stream, events):
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN | {"stream": stream})
        job = await worker.takes()
        await worker.says(job, *events)
        await client.leaves()
        await worker.is_told_to_cancel(job)


async def test_a_web_process_that_stops_cancels_its_generations():
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN)
        job = await worker.takes()
        client.task.cancel()
        await worker.is_told_to_cancel(job)


async def test_a_client_that_leaves_before_its_body_is_complete_asks_nothing():
    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])

    async def receive():
        return next(messages)

    async def send(message):
        raise AssertionError("nobody listens")

    scope = {"type": "http", "method": "POST", "path": "/completion", "headers": []}
    await ChatCompletions.as_asgi()(scope, receive, send)


async def test_without_a_worker_the_answer_is_503():
    client = await fetch("POST", "/v1/chat/completions", CHAT)
    assert client.status == 503
    assert client.json["error"]["type"] == "unavailable_error"


async def test_while_the_model_loads_the_answer_is_503():
    async with working(state="loading"):
        client = await fetch("POST", "/completion", PLAIN)
    assert client.status == 503
    assert client.json["error"]["message"] == "Loading model"


@pytest.mark.parametrize("events", [[], told("x")[:3]])
async def test_when_all_workers_have_died_the_stream_fails(events):
    app = completion(look_every=0.02, dead_after=0.05)
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN, app)
        job = await worker.takes()
        await worker.says(job, *events)
        if events:
            await client.hears("x")
    await async_client().delete(snapshot("w1"))
    await client.ends()
    error = (client.chunks[-1] if events else client.json)["error"]
    assert "The worker died" in error["message"]
    assert client.status == (200 if events else 503)
    await worker.is_told_to_cancel(job)


async def test_a_request_that_is_in_the_queue_still_is_not_lost(monkeypatch):
    monkeypatch.setattr(stream, "LOST_AFTER", 0.0)
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN, completion(look_every=0.01))
        job = await worker.takes()  # it stays in the queue until it is over
        await some_intervals(worker)
        await worker.says(job, *told("x"))
        await client.ends()
    assert client.status == 200


async def test_a_finished_generation_is_not_cancelled():
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN)
        await worker.says(await worker.takes(), *told("x"))
        await client.ends()
    assert not await cancelled()


async def test_a_limit_shows_in_the_final_chunk():
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN)
        end = Finished("limit", "", "y", 3, 2, True, 0, Timings(), 0, 0.0, 0.1)
        await worker.says(await worker.takes(), *told("x")[:3], end)
        await client.ends()
    assert client.chunks[-1]["stop_type"] == "limit"
    assert client.chunks[-1]["truncated"] is True
