from __future__ import annotations

import asyncio

from inference.broker import jobs, records
from inference.broker.connect import sync_client
from inference.broker.keys import RECORDS
from inference.broker.publisher import Publisher
from inference.broker.records import RecordReader
from inference.messages import Answer

from .play import job, new_id, numbered, told


def everything() -> list[tuple[str, records.Record]]:
    """Nothing blocks: there is always something to read."""
    reader = RecordReader()
    found: list[tuple[str, records.Record]] = []
    while not found:
        found = reader.read()
    reader.ack([id for id, _ in found])
    return found


async def test_a_submitted_generation_and_its_events_are_recorded_but_not_its_tokens():
    sync_client().delete(RECORDS)
    one = job()
    await jobs.submit(one, {"api": "chat"})
    await Publisher("w1").publish(numbered(one.id, told("a", "b")))
    found = await asyncio.to_thread(everything)
    mine = [record for _, record in found if record["id"] == one.id]
    assert [record["kind"] for record in mine] == ["submitted", "accepted", "started", "finished"]
    assert [record["worker"] for record in mine] == ["", "w1", "w1", "w1"]
    assert mine[0]["data"] == {"api": "chat"}
    assert mine[1]["data"]["prompt_tokens"] == 3


async def test_a_question_and_its_answer_are_not_recorded():
    sync_client().delete(RECORDS)
    one = job()
    await jobs.submit(one)
    await Publisher("w1").publish([(one.id, 1, Answer({"content": "text"}))])
    assert sync_client().exists(RECORDS) == 0


async def test_a_batch_that_was_not_acknowledged_comes_again(monkeypatch):
    monkeypatch.setattr(records, "CLAIM_AFTER_MS", 0)
    sync_client().delete(RECORDS)
    id = new_id()
    await Publisher("w1").publish(numbered(id, told("a"))[:1])
    first = await asyncio.to_thread(RecordReader().read)
    while not first:
        first = await asyncio.to_thread(RecordReader().read)
    again = await asyncio.to_thread(RecordReader().read)
    assert again == first
    RecordReader().ack([entry for entry, _ in again])
    assert sync_client().xlen(RECORDS) == 0
