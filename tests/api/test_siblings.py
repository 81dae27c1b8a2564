"""A request for several choices: its generations as one stream, or one body."""

from __future__ import annotations

import asyncio

import pytest

from inference.broker.connect import async_client
from inference.broker.control import cancelled
from inference.broker.keys import RECORDS, snapshot
from inference.broker.records import RecordReader
from inference.messages import Accepted, Failed, Preempted, Resumed, Started, Token
from inference.models import Generation
from inference.recorder import Recorder
from tests.broker.play import END, told

from .play import Client, Worker, working
from .test_generate import NEVER, completion, some_intervals

TWO = {"prompt": ["hi", "ho"], "stream": True}
OPENAI = {
    "/v1/completions": TWO,
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}], "n": 2, "stream": True},
}
ACCEPTED = Accepted(3, 1, 9)
PARK = Preempted(0, "pressure", 5, 50)
TOO_LONG = Failed(400, "exceed_context_size_error", "prompt 1: too long", {"n_ctx": 64})
BROKE = Failed(500, "exceed_context_size_error", "it broke")


async def accept(worker: Worker, job, n: int = 2) -> None:
    for index in range(n):
        await worker.says_of(job, index, ACCEPTED)


def texts(client: Client) -> dict[int, str]:
    """What each choice has said."""
    said: dict[int, str] = {}
    for chunk in client.chunks:
        for choice in chunk.get("choices", [chunk]):
            text = choice.get("content") or choice.get("text") or choice.get("delta", {}).get("content") or ""
            if "index" in choice:
                said[choice["index"]] = said.get(choice["index"], "") + text
    return said


@pytest.mark.parametrize("path", OPENAI)
async def test_choices_stream_side_by_side(path):
    async with working() as worker:
        client = Client("POST", path, OPENAI[path] | {"stream_options": {"include_usage": True}})
        job = await worker.takes()
        await accept(worker, job)
        for index, text in ((1, "Ho"), (0, "Hi"), (1, "!")):
            await worker.says_of(job, index, Token(1, text))
            await client.hears(text)
        await worker.says_of(job, 1, END)
        await worker.says_of(job, 0, Token(2, "?"), END)
        await client.ends()
    assert client.status == 200
    assert texts(client) == {0: "Hi?", 1: "Ho!"}
    assert len({chunk["id"] for chunk in client.chunks}) == 1
    assert sum("usage" in chunk for chunk in client.chunks) == 1
    assert client.body.count(b"[DONE]") == 1
    assert client.body.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("path", ["/v1/completions", "/completion"])
async def test_without_streaming_all_choices_are_one_body(path):
    async with working() as worker:
        client = Client("POST", path, TWO | {"stream": False, "n": 2})
        job = await worker.takes()
        await accept(worker, job, 4)
        for index in (3, 0, 2, 1):
            await worker.says_of(job, index, PARK, Resumed(0, 0.1), *told(str(index))[1:])
        await client.ends()
    choices = client.json if path == "/completion" else client.json["choices"]
    assert [(c["index"], c.get("content") or c["text"]) for c in choices] == [
        (0, "0"),
        (1, "1"),
        (2, "2"),
        (3, "3"),
    ]


async def test_each_notice_names_its_choice(options):
    options(sse_ping_interval=-1)
    async with working() as worker:
        client = Client("POST", "/completion", TWO, completion(parked_every=NEVER))
        job = await worker.takes()
        await accept(worker, job)
        for index, event in ((1, PARK), (0, PARK), (1, Resumed(0, 0.1)), (0, Resumed(0, 0.1))):
            await worker.says_of(job, index, event)
            await client.hears(f"{'preempted' if event is PARK else 'resumed'} {index}\n\n")
        await worker.says_of(job, 0, END)
        await worker.says_of(job, 1, END)
        await client.ends()
    assert client.comments == [": preempted 1", ": preempted 0", ": resumed 1", ": resumed 0"]


async def test_the_stream_is_kept_alive_as_parked_while_any_choice_is(options):
    options(sse_ping_interval=-1)
    async with working() as worker:
        client = Client("POST", "/completion", TWO, completion(parked_every=0.02))
        job = await worker.takes()
        await accept(worker, job)
        await worker.says_of(job, 0, PARK)
        await client.hears(": preempt-keepalive", 2)
        await worker.says_of(job, 1, Started(0), Token(1, "x"))
        await client.hears(": preempt-keepalive", client.body.count(b"keepalive") + 2)
        await worker.says_of(job, 0, END)  # cancelled or not: it is parked no more
        await client.hears('"stop":true')
        heard = client.body.count(b"keepalive")
        await some_intervals(worker)
        assert client.body.count(b"keepalive") == heard
        await worker.says_of(job, 1, END)
        await client.ends()


async def test_choices_that_show_nothing_do_not_put_off_the_keepalive():
    async with working() as worker:
        client = Client("POST", "/completion", TWO, completion(parked_every=0.05))
        job = await worker.takes()
        await accept(worker, job)
        await worker.says_of(job, 0, PARK)
        while b": preempt-keepalive" not in client.body:
            await worker.says_of(job, 1, Token(1, ""))
        await client.leaves()


@pytest.mark.parametrize(
    ("told_of_the_second", "comment"),
    [([], ": queued"), ([Started(0)], ": prefill"), ([Started(0), Token(1, "x")], ": ping")],
)
async def test_other_silences_are_named_after_the_choice_that_has_come_farthest(
    options, told_of_the_second, comment
):
    options(sse_ping_interval=0.02)
    async with working() as worker:
        client = Client("POST", "/completion", TWO)
        job = await worker.takes()
        await accept(worker, job)
        await worker.says_of(job, 1, *told_of_the_second)
        await client.hears(f"{comment}\n\n")
        await client.leaves()


async def test_a_header_turns_all_comments_off(options):
    options(sse_ping_interval=0.01)
    async with working() as worker:
        app = completion(parked_every=0.01)
        client = Client("POST", "/completion", TWO, app, X_Berth_Notices="off")
        job = await worker.takes()
        clock = Client("POST", "/completion", TWO, app)
        other = await worker.takes()
        for each in (job, other):
            await accept(worker, each)
            await worker.says_of(each, 1, PARK)
        await clock.hears(": preempt-keepalive", 3)
        await clock.leaves()
        await worker.says_of(job, 1, Resumed(0, 0.1), END)
        await worker.says_of(job, 0, END)
        await client.ends()
    assert client.comments == []


@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_is_a_plain_400_and_leaves_one_row_and_no_command(options, stream):
    options(sse_ping_interval=0.01)
    async with working() as worker:
        client = Client("POST", "/v1/completions", TWO | {"stream": stream})
        job = await worker.takes()
        await worker.says(job, TOO_LONG)
        await client.ends()
    assert client.status == 400
    assert client.json["error"]["message"] == TOO_LONG.message
    assert client.json["error"]["code"] == "context_length_exceeded"
    assert not await cancelled()
    row = await asyncio.to_thread(recorded)
    assert [(r.id.hex, r.state) for r in row] == [(job.id, "failed")]


def recorded() -> list[Generation]:
    """The rows, once all records are written."""
    recorder = Recorder(RecordReader())
    recorder.run_once()  # makes the group of readers
    recorder.run_once()
    return list(Generation.objects.order_by("pk"))


async def test_each_choice_has_a_row_of_its_own_that_knows_whose_it_is():
    async with working() as worker:
        client = Client("POST", "/v1/completions", TWO)
        job = await worker.takes()
        await accept(worker, job)
        for index in range(2):
            await worker.says_of(job, index, *told("x")[1:])
        await client.ends()
    rows = await asyncio.to_thread(recorded)
    assert {r.id.hex for r in rows} == set(job.generations())
    assert {(r.state, r.api, r.model, r.stream) for r in rows} == {("finished", "completions", "tiny", True)}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "told_of_each",
    [
        [[], []],
        [[ACCEPTED], [ACCEPTED]],
        [[ACCEPTED, Started(0), Token(1, "x")], [ACCEPTED, PARK]],
        [told("x"), [ACCEPTED, Started(0)]],
        [[ACCEPTED], told("x")],
    ],
)
async def test_a_client_that_leaves_cancels_the_job_whatever_its_choices_do(stream, told_of_each):
    async with working() as worker:
        client = Client("POST", "/completion", TWO | {"stream": stream})
        job = await worker.takes()
        for index, events in enumerate(told_of_each):
            await worker.says_of(job, index, *events)
        await client.leaves()
        await worker.is_told_to_cancel(job)


async def test_when_all_are_over_nothing_is_cancelled():
    async with working() as worker:
        client = Client("POST", "/completion", TWO)
        job = await worker.takes()
        for index in range(2):
            await worker.says_of(job, index, *told("x"))
        await client.ends()
    assert not await cancelled()


@pytest.mark.parametrize("path", ["/completion", "/v1/completions"])
async def test_one_that_fails_is_told_in_the_stream_and_the_others_go_on(path):
    async with working() as worker:
        client = Client("POST", path, TWO)
        job = await worker.takes()
        await accept(worker, job)
        await worker.says_of(job, 0, Started(0), BROKE)
        await client.hears("it broke")
        await worker.says_of(job, 1, *told("y")[1:])
        await client.ends()
    assert client.status == 200
    (error,) = [chunk["error"] for chunk in client.chunks if "error" in chunk]
    assert (error["message"], error["index"]) == ("it broke", 0)
    assert texts(client)[1] == "y"
    assert not await cancelled()


async def test_without_streaming_one_that_fails_fails_all_and_the_others_are_cancelled():
    async with working() as worker:
        client = Client("POST", "/v1/completions", TWO | {"stream": False})
        job = await worker.takes()
        await accept(worker, job)
        await worker.says_of(job, 1, Started(0), BROKE)
        await client.ends()
        await worker.is_told_to_cancel(job)
    assert client.status == 500
    assert client.json["error"]["index"] == 1


@pytest.mark.parametrize("accepted", [True, False])
async def test_when_all_workers_have_died_the_request_fails_as_a_whole(accepted):
    async with working() as worker:
        client = Client("POST", "/completion", TWO, completion(look_every=0.02, dead_after=0.05))
        job = await worker.takes()
        if accepted:
            await accept(worker, job)
            await worker.says_of(job, 1, Started(0), Token(1, "x"))
            await client.hears("x")
    await async_client().delete(snapshot("w1"))
    await client.ends()
    error = (client.chunks[-1] if accepted else client.json)["error"]
    assert "The worker died" in error["message"]
    await worker.is_told_to_cancel(job)


async def test_messages_that_are_lost_are_read_from_each_log():
    async with working() as worker:
        client = Client("POST", "/completion", TWO, completion(look_every=0.02))
        job = await worker.takes()
        for id in job.generations():
            worker._publisher.unroute(id)
        for index in range(2):
            await worker.says_of(job, index, *told(f"t{index}"))
        await client.ends()
    assert texts(client) == {0: "t0", 1: "t1"}


async def test_too_many_choices_are_refused_before_anything_is_asked_of_a_worker():
    async with working():
        client = await Client("POST", "/v1/completions", TWO | {"n": 65}).ends()
    assert client.status == 400
    assert client.json["error"]["param"] == "prompt"
    assert await async_client().xlen(RECORDS) == 0
