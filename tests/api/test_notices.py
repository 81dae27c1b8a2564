"""What a stream tells beside its text: notices of parks, keepalives, and how they are switched off."""

from __future__ import annotations

import asyncio

import pytest

from inference.messages import Accepted, Resumed, Started, Token
from inference.models import ApiKey
from tests.broker.play import END

from .play import Client, working
from .test_generate import NEVER, PARK, PLAIN, TOO_LONG, completion, some_intervals


async def test_a_park_is_told_before_the_first_token_and_opens_the_stream(options):
    options(sse_ping_interval=-1)
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN, completion(parked_every=NEVER))
        job = await worker.takes()
        await worker.says(job, Accepted(3, 1, 9), PARK)
        await client.hears(": preempted\n\n")
        assert client.status == 200
        await worker.says(job, Resumed(0, 0.1), Started(0), Token(1, "x"), END)
        await client.ends()
    assert client.comments == [": preempted", ": resumed"]


async def test_each_state_has_its_keepalive(options):
    options(sse_ping_interval=0.02)
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN, completion(parked_every=0.02))
        job = await worker.takes()
        for event, comment in (
            (Accepted(3, 1, 9), ": queued"),
            (Started(0), ": prefill"),
            (Token(1, "x"), ": ping"),
            (PARK, ": preempt-keepalive"),
            (Resumed(0, 0.1), ": ping"),
        ):
            heard = client.body.count(f"{comment}\n\n".encode())
            await worker.says(job, event)
            await client.hears(f"{comment}\n\n", heard + 1)
        await client.leaves()


async def test_a_refusal_is_still_plain_when_it_comes_after_the_ping_interval(options):
    options(sse_ping_interval=0.01)
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN, completion(look_every=0.01))
        job = await worker.takes()
        await some_intervals(worker)
        await worker.says(job, TOO_LONG)
        await client.ends()
    assert client.status == 400


async def test_events_that_send_nothing_do_not_put_off_the_keepalive(options):
    options(sse_ping_interval=0.05)
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN)
        job = await worker.takes()
        await worker.says(job, Accepted(3, 1, 9), Started(0))
        while b": prefill" not in client.body:
            await worker.says(job, Token(1, ""))
        await client.leaves()


async def test_without_a_ping_interval_only_a_parked_stream_has_keepalives(options):
    options(sse_ping_interval=-1)
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN, completion(parked_every=0.02, look_every=0.01))
        job = await worker.takes()
        await worker.says(job, Accepted(3, 1, 9))
        await some_intervals(worker)
        await worker.says(job, PARK)
        await client.hears(": preempt-keepalive")
        await worker.says(job, Resumed(0, 0.1), END)
        await client.ends()
    assert set(client.comments) == {": preempted", ": preempt-keepalive", ": resumed"}


@pytest.mark.parametrize("value", ["off", "OFF", "0", "false"])
async def test_a_header_turns_all_comments_off(options, value):
    options(sse_ping_interval=0.01)
    app = completion(parked_every=0.01, look_every=0.01)
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN, app, X_Berth_Notices=value)
        job = await worker.takes()
        await worker.says(job, Accepted(3, 1, 9), Started(0), PARK)
        await some_intervals(worker)
        await worker.says(job, Resumed(0, 0.1), Token(1, "x"), END)
        await client.ends()
    assert client.comments == []
    assert [chunk["content"] for chunk in client.chunks] == ["x", ""]


async def test_a_key_can_turn_all_comments_off():
    row, key = await asyncio.to_thread(ApiKey.objects.create_key, "strict")
    row.notices = False
    await row.asave()
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN, Authorization=f"Bearer {key}")
        job = await worker.takes()
        assert job.owner == "strict"
        await worker.says(job, Accepted(3, 1, 9), PARK, Resumed(0, 0.1), END)
        await client.ends()
    assert client.comments == []
