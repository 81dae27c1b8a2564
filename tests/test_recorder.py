"""Records become rows, whatever order, number or company they come in."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from inference.broker import connect, jobs, log
from inference.broker.keys import RECORDER_GROUP, RECORDS
from inference.broker.keys import event_log as event_log_key
from inference.broker.publisher import Publisher
from inference.broker.records import Record, RecordReader
from inference.messages import (
    Accepted,
    Event,
    Failed,
    Finished,
    Job,
    Preempted,
    Released,
    Resumed,
    Started,
    Timings,
    Token,
    encode_event,
)
from inference.models import ApiKey, Chat, Generation, Message, Preemption
from inference.recorder import Recorder, write_batch

pytestmark = pytest.mark.django_db

ID = uuid.UUID("0123456789abcdef0123456789abcdef")
T0 = 1_700_000_000.0


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(T0 + seconds, UTC)


def submitted(seconds: float = 0.0, **data: Any) -> Record:
    data = {"api": "chat", "model": "smol", "user_id": None, "key_id": None, "stream": True, **data}
    return {"id": ID.hex, "kind": "submitted", "worker": "", "at": T0 + seconds, "data": data}


def told(event: Event, seconds: float, worker: str = "w1") -> Record:
    data = encode_event(event)[1]
    return {"id": ID.hex, "kind": event.kind, "worker": worker, "at": T0 + seconds, "data": data}


def finished(stop_type: Any = "eos", text: str = "", parks: int = 1, parked_s: float = 2.0) -> Finished:
    return Finished(stop_type, "", text, 10, 20, False, 0, Timings(), parks, parked_s, 0.25)


def write(*records: Record) -> Generation | None:
    write_batch([(f"{i}-0", record) for i, record in enumerate(records)])
    return Generation.objects.filter(pk=ID).first()


LIFE = [
    submitted(0),
    told(Accepted(10, 42, 100), 1),
    told(Started(0), 2),
    told(Preempted(0, "pressure", 30, 4096), 3),
    told(Resumed(1, 2.0), 5),
    told(finished(), 6),
]


def rows() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    parks = [{k: v for k, v in row.items() if k != "id"} for row in Preemption.objects.values()]
    return [dict(row) for row in Generation.objects.values()], parks


def test_a_whole_life_becomes_a_row_and_a_park():
    generation = write(*LIFE)
    assert generation is not None
    assert (generation.state, generation.finish_reason) == ("finished", "stop")
    assert (generation.prompt_tokens, generation.completion_tokens) == (10, 20)
    assert (generation.parks, generation.parked_s, generation.ttft_s) == (1, 2.0, 0.25)
    assert (generation.api, generation.model, generation.stream) == ("chat", "smol", True)
    assert (generation.created_at, generation.started_at, generation.finished_at) == (at(0), at(2), at(6))
    assert generation.worker == "w1"
    park = generation.preemptions.get()
    assert (park.cause, park.kind, park.slot, park.cells, park.bytes) == ("pressure", "swap", 0, 30, 4096)
    assert (park.parked_at, park.resumed_at, park.waited_s) == (at(3), at(5), 2.0)


def test_a_row_tells_when_it_was_accepted_and_how_it_was_parked_last():
    later = [told(Preempted(1, "rotation", 40, 0, "recompute"), 6), told(Resumed(1, 1.0, "recompute"), 7)]
    for records in (LIFE[:5] + later, [*later, *reversed(LIFE[:5])]):
        Generation.objects.all().delete()
        generation = write(*records)
        assert generation is not None
        assert (generation.park_cause, generation.park_kind) == ("rotation", "recompute")
        assert generation.accepted_at == at(1)


def test_the_state_follows_the_events():
    states = []
    for record in LIFE:
        generation = write(record)
        assert generation is not None
        states.append(generation.state)
    assert states == ["queued", "queued", "running", "parked", "running", "finished"]


@pytest.mark.parametrize("again", range(len(LIFE)))
def test_a_record_that_comes_twice_changes_nothing(again):
    write(*LIFE)
    before = rows()
    write(LIFE[again])
    assert rows() == before


def test_a_batch_that_comes_twice_in_the_middle_of_a_life_changes_nothing():
    write(*LIFE[:4])
    before = rows()
    write(*LIFE[:4])
    assert rows() == before


@pytest.mark.parametrize("order", list(itertools.permutations(range(1, 6))))
def test_events_in_any_order_make_the_same_rows(order):
    write(LIFE[0], *(LIFE[i] for i in order))
    generations, parks = rows()
    assert [(g["state"], g["started_at"], g["parks"], g["parked_s"]) for g in generations] == [
        ("finished", at(2), 1, 2.0)
    ]
    assert [(p["cause"], p["parked_at"], p["resumed_at"], p["waited_s"]) for p in parks] == [
        ("pressure", at(3), at(5), 2.0)
    ]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_park_is_of_the_kind_in_which_the_state_came_back(order):
    moves = [told(Preempted(0, "pressure", 30, 4096), 3), told(Resumed(1, 2.0, "recompute"), 5)]
    write(*LIFE[:3], *(moves[i] for i in order))
    assert Preemption.objects.get().kind == "recompute"


def test_the_second_park_leaves_the_first_as_it_was():
    write(*LIFE[:5], told(Preempted(1, "forced", 40, 8192), 6), LIFE[4])
    assert list(Preemption.objects.order_by("parked_at").values_list("cause", "resumed_at")) == [
        ("pressure", at(5)),
        ("forced", None),
    ]
    generation = Generation.objects.get()
    assert (generation.state, generation.parks) == ("parked", 2)


def test_a_generation_parked_before_its_first_token_is_parked():
    generation = write(*LIFE[:2], told(Preempted(-1, "admission", 0, 0), 2))
    assert generation is not None
    assert (generation.state, generation.started_at) == ("parked", None)


def test_one_that_is_cancelled_while_parked_waited_until_then():
    generation = write(*LIFE[:4], told(finished("cancelled", parked_s=4.0), 7))
    assert generation is not None
    assert (generation.state, generation.finish_reason) == ("cancelled", "cancelled")
    park = generation.preemptions.get()
    assert (park.resumed_at, park.waited_s) == (None, 4.0)


def test_the_limit_is_told_as_length():
    generation = write(submitted(), told(finished("limit"), 1))
    assert generation is not None
    assert generation.finish_reason == "length"


def test_a_failure_keeps_its_reason():
    generation = write(*LIFE[:3], told(Failed(500, "server_error", "the worker stopped"), 4))
    assert generation is not None
    assert (generation.state, generation.error) == ("failed", "the worker stopped")
    assert generation.finished_at == at(4)


def test_a_generation_is_saved_once_however_many_records_of_a_batch_tell_of_it():
    with CaptureQueriesContext(connection) as captured:
        write(*LIFE)
    writes = [q["sql"] for q in captured if q["sql"].startswith(("INSERT", "UPDATE"))]
    assert [sql.split('"')[1] for sql in writes] == ["inference_generation", "inference_preemption"]


def test_a_failed_job_that_is_no_generation_makes_no_row():
    assert write(told(Failed(400, "invalid_request_error", "no"), 1)) is None


def test_the_submission_tells_the_priority_and_without_one_that_of_the_row_stays():
    generation = write(submitted(priority=-1))
    assert generation is not None
    assert generation.priority == -1
    generation = write(submitted())
    assert generation is not None
    assert generation.priority == -1


def test_a_chat_that_is_held_and_released_has_one_park_caused_by_hand():
    records = (told(Preempted(0, "hand", 30, 9), 3), told(Released(), 4))
    generation = write(*LIFE[:3], *records)
    assert generation is not None
    assert generation.state == "parked"
    generation = write(told(Resumed(0, 2.0), 5))
    assert generation is not None
    assert (generation.state, generation.preemptions.get().cause) == ("running", "hand")


def test_the_submission_completes_the_row_that_the_chat_made():
    user = User.objects.create_user("ada")
    message = Chat.objects.create(user=user).add("assistant")
    Generation.objects.create(pk=ID, api="web", user=user, message=message)
    generation = write(submitted(model="smol"))
    assert generation is not None
    assert (generation.api, generation.model, generation.message) == ("web", "smol", message)


def test_the_submission_of_a_program_names_its_key_and_user():
    user = User.objects.create_user("ada")
    key, _ = ApiKey.objects.create_key("laptop", user)
    generation = write(submitted(user_id=user.pk, key_id=key.pk))
    assert generation is not None
    assert (generation.user, generation.api_key) == (user, key)


def test_a_user_deleted_meanwhile_is_left_out():
    generation = write(submitted(user_id=12345, key_id=12345))
    assert generation is not None
    assert (generation.user, generation.api_key) == (None, None)


def test_a_record_that_makes_no_sense_is_left_out_and_the_rest_written(caplog):
    poison: list[Record] = [
        {**submitted(), "id": "not a uuid"},
        told(Started(0), 2) | {"data": {}, "at": "yesterday"},
        told(Accepted(10**30, 0, 0), 1),
    ]
    generation = write(LIFE[0], *poison, LIFE[2])
    assert generation is not None
    assert generation.state == "running"
    assert caplog.text.count("cannot be written") == len(poison)


# --- through Redis --------------------------------------------------------------------------------


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


def test_a_poison_record_is_acknowledged(recorder):
    connect.sync_client().xadd(
        RECORDS, {"r": '{"id": "no", "kind": "started", "worker": "", "at": 0, "data": {}}'}
    )
    assert recorder.run_once() == 1
    assert unwritten() == 0


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
