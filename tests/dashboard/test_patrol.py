"""What nobody reads is looked after too: what is lost is asked for again, or fails and says so."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError
from django.utils import timezone

from dashboard import patrol
from inference.broker import jobs, occupancy
from inference.broker.connect import sync_client
from inference.broker.keys import JOBS, changes, event_log
from inference.broker.publisher import Publisher
from inference.messages import Accepted, Event, Job, Token
from inference.models import Generation

from .test_lost import END
from .test_send import last_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def asked(as_ada, ada) -> Generation:
    """The answer to ada's message, which nobody reads; a worker lives, and has nothing."""
    as_ada.post("/chats/", {"text": "Tell me of boats"})
    grow_old()
    asyncio.run(occupancy.put({"worker": "w1"}))
    return Generation.objects.get(user=ada)


def grow_old() -> None:
    Generation.objects.update(created_at=timezone.now() - timedelta(minutes=1))


def lose(**places: Any) -> None:
    """Redis comes back without its data, and a worker that has this."""
    sync_client().flushdb()
    asyncio.run(occupancy.put({"worker": "w1", **places}))


def write(generation: Generation, *events: Event) -> None:
    """What its log holds."""
    asyncio.run(Publisher("w1").publish([(generation.id.hex, n, event) for n, event in enumerate(events, 1)]))


def look() -> list[float]:
    """The waits that it took."""
    waits: list[float] = []
    patrol.look(waits.append)
    return waits


def test_what_was_lost_in_the_queue_is_asked_for_again_once_and_as_it_was(asked):
    before = last_job()
    lose()
    for _ in range(2):
        look()
    assert sync_client().xlen(JOBS) == 1
    assert (last_job().id, last_job().body) == (before.id, before.body)
    asked.refresh_from_db()
    assert asked.state == "queued"


def test_what_had_begun_has_failed_and_says_so(asked):
    asked.started_at = timezone.now()
    asked.save()
    lose()
    look()
    asked.refresh_from_db()
    assert (asked.state, "lost" in asked.error) == ("failed", True)
    assert not sync_client().exists(JOBS)
    assert sync_client().exists(changes(asked.user_id))  # its pages are told


def test_so_has_one_whose_job_is_gone_with_the_text_that_its_log_has(asked):
    write(asked, Accepted(5, 1, -1), Token(1, "They "), Token(2, "float"))
    sync_client().delete(JOBS)
    look()
    asked.refresh_from_db()
    assert (asked.state, asked.message.content) == ("failed", "They float")


def test_an_end_that_no_record_told_of_is_written(asked):
    write(asked, Accepted(5, 1, -1), Token(1, "They float"), END)
    sync_client().delete(JOBS)
    look()
    asked.refresh_from_db()
    assert (asked.state, asked.message.content) == ("finished", "They float")


@pytest.mark.parametrize("where", ["in the queue", "in a slot", "parked", "waiting", "young", "no worker"])
def test_what_somebody_knows_of_is_left_alone(asked, where):
    place = {"in a slot": "slots", "parked": "parked", "waiting": "queue"}.get(where)
    if where != "in the queue":
        lose(**({place: [{"generation": asked.id.hex}]} if place else {}))
    if where == "young":
        Generation.objects.update(created_at=timezone.now())
    if where == "no worker":
        sync_client().flushdb()
    before = sync_client().xlen(JOBS)
    assert look() == []
    asked.refresh_from_db()
    assert (asked.state, sync_client().xlen(JOBS)) == ("queued", before)


def test_so_is_a_sibling_whose_job_is_in_the_queue(asked):
    lose()
    job = Job(uuid.uuid4().hex, "generate", {"n": 2}, "")
    jobs.submit_sync(job)
    Generation.objects.all().delete()
    Generation.objects.create(pk=uuid.UUID(hex=job.generations()[1]))
    grow_old()
    assert look() == []


def test_what_is_found_meanwhile_is_left_alone(asked):
    lose()
    patrol.look(lambda seconds: jobs.submit_sync(Job(asked.id.hex, "generate", {}, "")))
    assert sync_client().xlen(JOBS) == 1


@pytest.mark.parametrize("why", ["of the API", "deleted"])
def test_what_cannot_be_asked_for_again_has_failed(asked, why):
    lose()
    chat = asked.message.chat
    if why == "of the API":
        Generation.objects.update(message=None)
    else:
        chat.deleted_at = timezone.now()
        chat.save()
    look()
    asked.refresh_from_db()
    assert asked.state == "failed"
    assert not sync_client().exists(JOBS)


def test_a_log_that_cannot_be_read_is_the_end(asked):
    sync_client().delete(JOBS)
    sync_client().xadd(event_log(asked.id.hex), {"e": b"\xff"})
    look()
    asked.refresh_from_db()
    assert (asked.state, "part of the answer was lost" in asked.error) == ("failed", True)


def test_one_process_looks_at_a_time(asked, monkeypatch):
    looks: list[Any] = []
    monkeypatch.setattr(patrol, "look", looks.append)
    for _ in range(3):
        patrol.attempt()
    assert len(looks) == 1


def test_while_the_database_or_redis_is_away_it_looks_later(asked, monkeypatch, redis_server, caplog):
    def away(wait: Any) -> None:
        raise OperationalError

    monkeypatch.setattr(patrol, "look", away)
    patrol.attempt()
    redis_server.kill()
    patrol.attempt()
    assert caplog.text.count("looked for later") == 2
