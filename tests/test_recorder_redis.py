"""The recorder at its stream: nothing is lost while the database or Redis is away, or comes twice."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from inference.broker import connect, jobs, log
from inference.broker.keys import RECORDER_GROUP, RECORDS
from inference.broker.keys import event_log as event_log_key
from inference.broker.publisher import Publisher
from inference.broker.records import RecordReader
from inference.messages import Accepted, Event, Failed, Job, Preempted, Resumed, Started, Token
from inference.models import Chat, Generation, Message
from inference.recorder import Recorder, write_batch

from .test_recorder import finished, rows, submitted, told

pytestmark = pytest.mark.django_db


@pytest.fixture
def recorder(transactional_db: None) -> Recorder:
    """One whose stream of records is there and empty."""
    connect.sync_client().delete(RECORDS)
    reader = RecordReader()
    assert reader.read() == []  # which makes the consumer group
    return Recorder(reader)


@pytest.fixture
def generation(recorder: Recorder) -> Generation:
    """One of a chat, submitted."""
    chat = Chat.objects.create(user=User.objects.create_user("ada"))
    generation = Generation.objects.create(message=chat.add("assistant"))
    jobs.submit_sync(Job(generation.id.hex, "generate", {}, ""), {})
    return generation


def publish(generation: Generation, events: Sequence[Event], first: int = 1) -> None:
    async def say() -> None:
        numbered = [(generation.id.hex, seq, event) for seq, event in enumerate(events, first)]
        await Publisher("w1").publish(numbered)
        await connect.close()

    asyncio.run(say())


def unwritten() -> int:
    """Records taken or not, that nobody acknowledged."""
    return connect.sync_client().xlen(RECORDS)


def test_the_answer_is_the_text_of_the_log_and_what_was_held_back(recorder, generation):
    before = generation.message.chat.updated_at
    publish(generation, [Accepted(1, 1, 9), Started(0), Token(5, "Hel"), Token(6, ""), Token(7, "lo")])
    publish(generation, [finished(text=" you")], first=6)
    assert recorder.run_once() == 4
    generation = Generation.objects.select_related("message__chat").get()
    assert generation.state == "finished"
    assert generation.message is not None
    assert generation.message.content == "Hello you"
    assert generation.message.chat.updated_at > before
    assert unwritten() == 0
    assert 0 < connect.sync_client().ttl(event_log_key(generation.id.hex)) <= log.KEEP_RECORDED_S


def test_a_failure_keeps_the_text_so_far(recorder, generation):
    publish(generation, [Accepted(1, 1, 9), Started(0), Token(5, "Hel"), Failed(500, "server_error", "gone")])
    recorder.run_once()
    generation = Generation.objects.select_related("message").get()
    assert (generation.state, generation.error) == ("failed", "gone")
    assert generation.message is not None
    assert generation.message.content == "Hel"


def test_an_answer_that_goes_on_is_written_behind_what_was_there_however_often(recorder, generation):
    Message.objects.update(content="Once upon")
    Generation.objects.update(goes_on_from=4)
    publish(generation, [Token(5, " more"), finished()])
    for _ in range(2):
        write_batch([("1-0", told(finished(), 9) | {"id": generation.id.hex})])
        assert Message.objects.get().content == "Once more"


def test_an_end_that_comes_again_after_its_log_is_gone_leaves_the_answer(recorder, generation):
    publish(generation, [Token(5, "Hello"), finished()])
    recorder.run_once()
    connect.sync_client().flushdb()
    write_batch([("1-0", told(finished(), 9) | {"id": generation.id.hex})])
    assert generation.message.chat.history() == [{"role": "assistant", "content": "Hello"}]


def test_a_character_that_no_database_takes_is_left_out(recorder, generation):
    publish(generation, [Token(5, "a\0b"), finished()])
    recorder.run_once()
    assert generation.message.chat.history() == [{"role": "assistant", "content": "ab"}]


def test_a_failure_that_overtook_its_submission_comes_again(recorder):
    failure = told(Failed(400, "invalid_request_error", "no"), 0) | {"at": time.time()}
    assert write_batch([("1-0", failure)]) == []
    assert write_batch([("2-0", submitted()), ("1-0", failure)]) == ["2-0", "1-0"]
    assert Generation.objects.get().state == "failed"


def test_a_poison_record_is_acknowledged_and_the_rest_written(recorder, generation):
    id = generation.id.hex
    poison: list[Any] = [
        b"\xff",
        '{"id": "no", "kind": "started", "worker": "", "at": 0, "data": {}}',
        json.dumps({"id": id, "kind": "started", "worker": "", "at": 1e300, "data": {}}),
        json.dumps({"id": id, "kind": "finished", "worker": "", "at": 1, "data": {}}),
    ]
    for raw in poison:
        connect.sync_client().xadd(RECORDS, {"r": raw})
    publish(generation, [Accepted(1, 1, 9), Started(0)])
    recorder.run_once()
    assert unwritten() == 0
    generation.refresh_from_db()
    assert generation.state == "running"


def test_one_whose_log_cannot_be_read_has_failed_with_the_text_that_is_there(recorder, generation):
    publish(generation, [Token(5, "Hello"), Token(6, " you")])
    connect.sync_client().xadd(event_log_key(generation.id.hex), {"e": b"\xff"}, id="3-0")
    publish(generation, [finished()], first=4)
    recorder.run_once()
    generation.refresh_from_db()
    assert (generation.state, "part of the answer was lost" in generation.error) == ("failed", True)
    assert generation.message.chat.history() == [{"role": "assistant", "content": "Hello you"}]


def test_while_the_database_is_locked_records_wait_and_are_then_written(recorder, generation, caplog):
    publish(generation, [Accepted(1, 1, 9), Started(0)])
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 1")
    other = connection.copy()
    other.cursor().execute("BEGIN IMMEDIATE")
    waits: list[float] = []

    def wait(seconds: float) -> None:
        assert unwritten() == 3
        waits.append(seconds)
        if len(waits) == 3:
            other.cursor().execute("ROLLBACK")

    caplog.set_level("INFO")
    try:
        assert Recorder(recorder.reader, wait).run_once() == 3
    finally:
        other.close()
    assert waits == sorted(set(waits))  # longer and longer
    assert [record.levelname for record in caplog.records if record.name == "inference.recorder"] == [
        "WARNING",
        "INFO",
    ]
    assert Generation.objects.get().state == "running"
    assert unwritten() == 0


def test_a_batch_that_was_written_but_not_acknowledged_changes_nothing_when_it_comes_again(
    recorder, generation
):
    publish(
        generation,
        [Accepted(1, 1, 9), Started(0), Preempted(0, "forced", 3, 9), Token(5, "a"), Resumed(0, 1.0)],
    )
    write_batch(recorder.reader.read())
    before = rows()
    client = connect.sync_client()
    pending = client.xpending_range(RECORDS, RECORDER_GROUP, "-", "+", 100)
    assert len(pending) == 5
    claimed: Any = client.xclaim(
        RECORDS, RECORDER_GROUP, "next", 0, [entry["message_id"] for entry in pending]
    )
    again = [(entry.decode(), json.loads(fields[b"r"])) for entry, fields in claimed]
    write_batch(again)
    assert rows() == before


def test_a_process_has_one_recorder_which_lives_while_redis_is_away(tmp_path):
    program = """
import logging, threading, django
django.setup()
from inference.recorder import start_thread
said = threading.Event()
logging.getLogger("inference.recorder").addFilter(lambda record: said.set() or True)
first = start_thread()
said.wait(120)
first.join(0.5)
print(first.is_alive(), first.daemon, start_thread() is first)
"""
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "project.settings",
        "BERTH_DATA_DIR": str(tmp_path),
        "DATABASE_URL": f"sqlite:///{tmp_path / 'db.sqlite3'}",
        "REDIS_URL": f"unix://{tmp_path / 'nobody.sock'}",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True"] * 3
    assert done.stderr.count("Records wait") == 1
