"""Records become rows, whatever order, number or company they come in."""

from __future__ import annotations

import itertools
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from inference.broker.records import Record
from inference.messages import (
    Accepted,
    Event,
    Failed,
    Finished,
    Preempted,
    Released,
    Resumed,
    Started,
    Timings,
    encode_event,
)
from inference.models import ApiKey, Chat, Generation, Preemption
from inference.recorder import write_batch

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
    return Finished(stop_type, "", text, 10, 20, False, 0, Timings(cache_n=4), parks, parked_s, 0.25)


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
    assert (generation.prompt_tokens, generation.cached_tokens, generation.completion_tokens) == (10, 4, 20)
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
