from __future__ import annotations

import asyncio
import json
import time
from contextlib import aclosing
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from dashboard import stream
from dashboard.thread import thread
from inference.broker import control, log, occupancy
from inference.broker.connect import async_client
from inference.broker.keys import CONTROL
from inference.broker.publisher import Publisher
from inference.messages import Accepted, Failed, Finished, Preempted, Resumed, Started, Timings, Token
from inference.models import Generation, OperatorAction

pytestmark = pytest.mark.django_db(transaction=True)

END = Finished("eos", "", ".", 5, 2, False, 0, Timings(), 0, 0.0, 0.1)


async def publish(generation: Generation, *found, first: int = 1) -> None:
    id = generation.id.hex
    numbered = [(id, seq, event) for seq, event in enumerate(found, start=first)]
    await Publisher("w1").publish(numbered)


async def read(generation: Generation, user, after: int = 0) -> list[Any]:
    """(id, kind, data) of all events up to the last."""
    async with aclosing(stream.follow(generation, user, after)) as chunks:
        return [event async for chunk in chunks for event in decoded(chunk)]


def decoded(chunk: bytes):
    for block in chunk.decode().strip().split("\n\n"):
        if not block.startswith((":", "retry")):
            fields = dict(line.split(": ", 1) for line in block.split("\n"))
            yield fields.get("id", "").rpartition(".")[2] or None, fields["event"], json.loads(fields["data"])


async def test_a_stream_tells_everything_from_the_beginning(generation, ada):
    events = [
        Accepted(5, 1, -1),
        Started(0),
        Token(1, "Boats "),
        Preempted(0, "pressure", 9, 99),
        Resumed(0, 1.0),
    ]
    await publish(generation, *events, Token(2, "float"), END)
    found = await read(generation, ada)
    assert [(id, kind) for id, kind, _ in found] == [
        ("1", "accepted"),
        ("2", "started"),
        ("3", "token"),
        ("4", "preempted"),
        ("5", "resumed"),
        ("6", "token"),
        ("7", "finished"),
    ]
    assert "".join(data for _, kind, data in found if kind == "token") == "Boats float"


async def test_a_browser_that_comes_back_gets_what_it_has_not_seen(generation, ada):
    await publish(generation, Accepted(5, 1, -1), Token(1, "Boats "), Token(2, "float"), END)
    assert [id for id, _, _ in await read(generation, ada, after=2)] == ["3", "4"]


async def test_events_that_come_later_are_told_as_they_come(generation, ada):
    await publish(generation, Accepted(5, 1, -1))
    async with aclosing(stream.follow(generation, ada, 0)) as chunks:
        found = []
        async for chunk in chunks:
            found += decoded(chunk)
            if found and found[-1][1] == "accepted":
                await publish(generation, Token(1, "Boats"), END, first=2)
    told = [kind for _, kind, _ in found if kind != "now"]  # which may come before the token, or after it
    assert told == ["accepted", "token", "finished"]


async def test_silence_is_filled_with_comments(generation, ada):
    await publish(generation, Accepted(5, 1, -1))
    async with aclosing(stream.follow(generation, ada, 0)) as chunks:
        async for chunk in chunks:
            if chunk == b": keepalive\n\n":
                return
    raise AssertionError("the stream ended")


async def test_silence_asks_the_database_nothing_while_a_worker_has_the_answer(generation, ada, monkeypatch):
    slot = {"state": "decode", "generation": generation.id.hex}
    await occupancy.put({"worker": "w1", "slots": [slot]})
    await publish(generation, Accepted(5, 1, -1))
    monkeypatch.setattr(stream, "find", None)
    monkeypatch.setattr(stream, "KEEPALIVE_S", 0.01)
    keepalives = 0
    async with aclosing(stream.follow(generation, ada, 0)) as chunks:
        async for chunk in chunks:
            keepalives += chunk == b": keepalive\n\n"
            if keepalives == 3:
                return
    raise AssertionError("the stream ended")


async def test_a_park_in_progress_is_told_with_its_true_wait(generation, ada):
    since = time.time() - 60
    parked = [{"generation": generation.id.hex, "since": since}]
    await occupancy.put({"worker": "w1", "parked": parked})
    await publish(generation, Accepted(5, 1, -1), Preempted(0, "pressure", 9, 99), END)
    [data] = [data for _, kind, data in await read(generation, ada) if kind == "preempted"]
    assert data["since"] == since
    assert data["waited"] >= 60


async def test_without_a_worker_it_says_so_while_it_waits(generation, ada):
    async with aclosing(stream.follow(generation, ada, 0)) as chunks:
        async for chunk in chunks:
            for _, kind, data in decoded(chunk):
                if kind == "waiting":
                    assert data == {"reason": "no worker"}
                    return


async def test_what_has_been_is_told_apart_from_what_is(generation, ada):
    await publish(generation, Accepted(5, 1, -1), Preempted(0, "pressure", 9, 99), Resumed(0, 1.0))
    kinds = []
    async with aclosing(stream.follow(generation, ada, 1)) as chunks:
        async for chunk in chunks:
            kinds += [kind for _, kind, _ in decoded(chunk)]
            if kinds[-1:] == ["now"]:
                await publish(generation, Preempted(0, "pressure", 9, 99), END, first=4)
    assert kinds == ["preempted", "resumed", "now", "preempted", "finished"]


async def test_a_failure_ends_the_stream(generation, ada):
    await publish(generation, Failed(500, "server_error", "the cable broke"))
    [(_, kind, data)] = await read(generation, ada)
    assert kind == "failed"
    assert data["note"].endswith("the cable broke.")


async def test_who_did_not_stop_it_is_told_that_an_operator_has(generation, ada):
    end = Finished("cancelled", "", "", 5, 2, False, 0, Timings(), 0, 0.0, 0.1)
    told = {"note": "Stopped by an operator.", "advice": "“Continue” goes on from here."}
    await publish(generation, end)
    [(_, _, data)] = await read(generation, ada)
    assert (data["note"], data["advice"]) == ("Stopped.", "")
    command = control.Command("cancel", generation.id.hex, worker="w1", reply="r")
    await control.tell(command)  # its trace is not written yet
    [(_, _, data)] = await read(generation, ada)
    assert told.items() <= data.items()
    await async_client().delete(CONTROL)
    act = {"kind": "cancel", "generation": generation.pk, "worker": "w1"}
    await OperatorAction.objects.acreate(**act)
    [(_, _, data)] = await read(generation, ada)
    assert told.items() <= data.items()
    generation.state = "cancelled"
    await generation.asave()
    row = await stream.find(generation.pk, ada)
    *_, (_, _, data) = await read(row, ada)
    assert told.items() <= data.items()
    [*_, turn] = await sync_to_async(thread)(generation.message.chat)
    assert turn.note == told["note"]


async def test_a_generation_that_is_over_is_told_from_its_row(generation, ada):
    generation.message.content = "Boats float."
    await generation.message.asave()
    generation.state = "finished"
    await generation.asave()
    found = await read(generation, ada)
    end = {"note": "", "advice": "", "advice_without_text": "", "look": "finished", "unfinished": False}
    assert [(kind, data) for _, kind, data in found] == [("text", "Boats float."), ("finished", end)]


async def test_a_log_that_expires_under_a_reader_is_replaced_by_the_row(generation, ada):
    await publish(generation, Accepted(5, 1, -1), Token(1, "Boats"))
    kinds = []
    async with aclosing(stream.follow(generation, ada, 0)) as chunks:
        async for chunk in chunks:
            kinds += [kind for _, kind, _ in decoded(chunk)]
            if kinds == ["accepted", "token"]:
                await async_client().delete(f"berth:gen:{generation.id.hex}")
                await sync_to_async(Generation.objects.update)(state="cancelled")
    assert kinds[-2:] == ["text", "finished"]


async def test_a_reader_who_leaves_does_not_end_the_generation(generation, ada):
    await publish(generation, Accepted(5, 1, -1))
    async with aclosing(stream.follow(generation, ada, 0)) as chunks:
        async for _ in chunks:
            break
    commands: Any = await async_client().xrange("berth:control")
    assert {fields[b"kind"] for _, fields in commands} <= {b"follow"}
    assert await log.last(generation.id.hex) == 1


async def test_only_the_owner_finds_a_generation(generation, ada, grace):
    assert await stream.find(generation.pk, ada) == generation
    assert await stream.find(generation.pk, grace) is None


async def test_many_readers_get_the_same(generation, ada):
    await occupancy.put({"worker": "w1", "parked": []})  # or who comes before the first event is told of that
    readers = [asyncio.create_task(read(generation, ada)) for _ in range(3)]
    await publish(generation, Accepted(5, 1, -1), Token(1, "Boats"), END)
    results = await asyncio.gather(*readers)
    assert results[0] == results[1] == results[2]
    assert len(results[0]) == 3
