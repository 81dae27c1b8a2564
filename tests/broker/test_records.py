from __future__ import annotations

import asyncio
from typing import Any

from inference.broker import jobs, records
from inference.broker.connect import sync_client
from inference.broker.keys import RECORDER_GROUP, RECORDS
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


def test_a_reader_that_is_gone_is_forgotten_once_nothing_is_left_of_what_it_took(monkeypatch):
    client: Any = sync_client()
    client.delete(RECORDS)
    client.xgroup_create(RECORDS, RECORDER_GROUP, id="0", mkstream=True)
    for name in ("gone", "with a batch"):
        client.xgroup_createconsumer(RECORDS, RECORDER_GROUP, name)
    for _ in range(2):
        client.xadd(RECORDS, {"r": "{}"})
    client.xreadgroup(RECORDER_GROUP, "with a batch", {RECORDS: ">"}, count=1)
    RecordReader().read()
    assert len(client.xinfo_consumers(RECORDS, RECORDER_GROUP)) == 3
    monkeypatch.setattr(records, "FORGET_AFTER_MS", -1)
    client.xadd(RECORDS, {"r": "{}"})
    reader = RecordReader()
    reader.read()
    names = {found["name"].decode() for found in client.xinfo_consumers(RECORDS, RECORDER_GROUP)}
    assert names == {"with a batch", reader._name}
