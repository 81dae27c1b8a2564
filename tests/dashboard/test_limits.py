"""A person who has as many answers under way as allowed is told calmly, and loses nothing."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest

from inference.broker import admission, occupancy
from inference.broker.connect import sync_client
from inference.broker.keys import IN_FLIGHT, JOBS
from inference.broker.publisher import Publisher
from inference.limits import of_key
from inference.models import ApiKey, Chat, Generation, UserLimits
from tests.broker.play import END

from .test_send import last_job

pytestmark = pytest.mark.django_db
FULL = "There is no room for one more answer just now. Try again in a moment. Your text is still here."


@pytest.fixture
def options(settings):
    return lambda **values: setattr(settings, "BERTH", replace(settings.BERTH, **values))


def limit(user, n: int) -> None:
    UserLimits.objects.create(user=user, max_concurrent=n)


def test_one_more_than_allowed_is_refused_and_nothing_is_kept(as_ada, ada, chat):
    limit(ada, 1)
    assert as_ada.post("/chats/", {"text": "One"}).status_code == 201
    for path in ("/chats/", f"/chats/{chat.pk}/messages"):
        reply = as_ada.post(path, {"text": "Two"})
        assert (reply.status_code, reply["Retry-After"]) == (429, "2")
        error = reply.json()["error"]
        assert error.startswith("You may have one answer on the way at once.")
        assert error.endswith("Your text is still here.")
    assert Chat.objects.count() == 2
    assert not chat.messages.exists()
    assert Generation.objects.count() == 1
    assert sync_client().xlen(JOBS) == 1


def test_an_answer_that_has_ended_makes_room(as_ada, ada):
    limit(ada, 1)
    as_ada.post("/chats/", {"text": "One"})
    id = Generation.objects.get().id.hex
    asyncio.run(Publisher("w1").publish([(id, 1, END)], [id]))
    assert as_ada.post("/chats/", {"text": "Two"}).status_code == 201


def test_the_answers_of_ones_keys_count_too(as_ada, ada):
    limit(ada, 1)
    row, _ = ApiKey.objects.create_key("laptop", ada)
    admission.admit_sync("0" * 32, 1, of_key(row))
    assert as_ada.post("/chats/", {"text": "One"}).status_code == 429


def test_others_are_not_concerned(as_ada, ada, grace, client):
    limit(ada, 1)
    as_ada.post("/chats/", {"text": "One"})
    client.force_login(grace)
    assert client.post("/chats/", {"text": "Two"}).status_code == 201


def test_a_person_without_a_limit_has_the_servers(as_ada, options):
    options(max_per_user=1)
    as_ada.post("/chats/", {"text": "One"})
    assert as_ada.post("/chats/", {"text": "Two"}).status_code == 429


def test_a_full_server_is_told_as_such(as_ada, options):
    options(max_queue=1)
    as_ada.post("/chats/", {"text": "One"})
    reply = as_ada.post("/chats/", {"text": "Two"})
    assert (reply.status_code, reply["Retry-After"], reply.json()) == (503, "5", {"error": FULL})
    asyncio.run(occupancy.put({"worker": "w1", "at": time.time(), "slots": [{}]}))
    assert as_ada.post("/chats/", {"text": "Two"}).status_code == 201  # it has a slot


def test_a_chat_that_is_still_being_answered_takes_no_room_for_its_next(as_ada, chat, generation):
    assert as_ada.post(f"/chats/{chat.pk}/messages", {"text": "And now?"}).status_code == 409
    assert not sync_client().exists(IN_FLIGHT)


def test_stopping_what_no_worker_runs_makes_room(as_ada, ada):
    limit(ada, 1)
    as_ada.post("/chats/", {"text": "One"})
    as_ada.post(f"/generations/{Generation.objects.get().pk}/stop")
    assert as_ada.post("/chats/", {"text": "Two"}).status_code == 201


@pytest.mark.parametrize(
    ("n_predict", "max_output", "max_log", "got"),
    [(-1, -1, 99, 99), (9, -1, 99, 9), (-1, 7, 99, 7), (9, 7, 99, 7), (9, 7, 5, 5)],
)
def test_an_answer_is_as_long_as_the_least_of_the_flags(n_predict, max_output, max_log, got, as_ada, options):
    options(n_predict=n_predict, max_output=max_output, max_log=max_log)
    as_ada.post("/chats/", {"text": "One"})
    assert last_job().body["max_tokens"] == got
