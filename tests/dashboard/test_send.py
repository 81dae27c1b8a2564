from __future__ import annotations

import asyncio
import json
import re
import time
from typing import Any

import pytest
from django.test import Client

from inference.broker import log, occupancy
from inference.broker.connect import sync_client
from inference.broker.keys import CONTROL, JOBS, event_log
from inference.messages import Accepted, Finished, Job, Timings, Token, encode_event
from inference.models import Chat, Generation

pytestmark = pytest.mark.django_db


def last_entry(stream: str) -> Any:
    [(_, fields)] = sync_client().xrevrange(stream, count=1)  # type: ignore[misc]
    return fields


def last_job() -> Job:
    return Job.from_json(last_entry(JOBS)[b"job"])


def write_log(generation: Generation, *events) -> None:
    entry: dict[Any, Any] = {"e": log.encode([encode_event(event) for event in events])}
    sync_client().xadd(event_log(generation.id.hex), entry, id=f"{len(events)}-0")


def finished(stop_type="eos", text="") -> Finished:
    return Finished(stop_type, "", text, 5, 2, False, 0, Timings(), 0, 0.0, 0.1)


def test_a_first_message_makes_a_chat_named_after_it(as_ada, ada):
    reply = as_ada.post("/chats/", {"text": "Tell me\nof  boats"})
    chat = Chat.objects.get(user=ada)
    assert reply.status_code == 201
    assert reply.json() == {"url": f"/chats/{chat.pk}/"}
    assert chat.title == "Tell me of boats"
    assert list(chat.messages.values_list("role", "content")) == [
        ("user", "Tell me\nof  boats"),
        ("assistant", ""),
    ]


def test_the_job_carries_the_chat_and_the_name_of_its_owner(as_ada, ada, settings):
    as_ada.post("/chats/", {"text": "Tell me of boats"})
    generation = Generation.objects.get(user=ada)
    job = last_job()
    assert job.id == generation.id.hex
    assert (job.kind, job.owner) == ("generate", "ada")
    assert job.body["messages"] == [{"role": "user", "content": "Tell me of boats"}]
    assert job.body["stream"] is True
    assert job.body["sampling"]["temperature"] == settings.BERTH.temp
    assert job.body["max_tokens"] == settings.BERTH.longest


def test_a_later_message_brings_the_history(as_ada, chat):
    chat.add("user", "One")
    chat.add("assistant", "Two")
    reply = as_ada.post(f"/chats/{chat.pk}/messages", {"text": "Three"})
    assert reply.status_code == 201
    assert [m["content"] for m in last_job().body["messages"]] == ["One", "Two", "Three"]
    assert "Three" in reply.json()["html"]
    assert f"/generations/{Generation.objects.get().pk}/events" in reply.json()["html"]


def test_a_question_that_got_no_answer_is_left_out_of_the_history(as_ada, chat):
    for role, content in (("user", "Lost"), ("assistant", ""), ("user", "Again")):
        chat.add(role, content)
    as_ada.post(f"/chats/{chat.pk}/messages", {"text": "Once more"})
    assert [m["content"] for m in last_job().body["messages"]] == ["Once more"]


def test_a_message_lifts_its_chat_to_the_top(as_ada, ada, chat):
    Chat.objects.create(user=ada, title="Newer")
    as_ada.post(f"/chats/{chat.pk}/messages", {"text": "Hello"})
    assert [c.title for c in as_ada.get("/").context["chats"]] == ["Boats", "Newer"]


def test_one_answer_at_a_time(as_ada, chat, generation):
    reply = as_ada.post(f"/chats/{chat.pk}/messages", {"text": "And now?"})
    assert reply.status_code == 409
    assert reply.json() == {"error": "This chat is still being answered. Stop it, or wait until it is done."}
    assert not chat.messages.filter(content="And now?").exists()


def test_an_answer_that_has_ended_does_not_block_while_its_row_lags(as_ada, chat, generation):
    write_log(generation, Accepted(5, 1, -1), Token(1, "Boats "), Token(2, "float"), finished(text="."))
    reply = as_ada.post(f"/chats/{chat.pk}/messages", {"text": "And now?"})
    assert reply.status_code == 201
    assert [m["content"] for m in last_job().body["messages"]] == [
        "Tell me of boats",
        "Boats float.",
        "And now?",
    ]
    generation.refresh_from_db()
    assert generation.state == "finished"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "Write a message first."),
        (" \n ", "Write a message first."),
        ("x" * 100_001, "The message is too long: 100,000 characters at most."),
        ("a\0b", "Null characters are not allowed."),
    ],
)
def test_a_message_that_cannot_be_kept_is_refused(as_ada, chat, text, error):
    for path in ("/chats/", f"/chats/{chat.pk}/messages"):
        reply = as_ada.post(path, {"text": text})
        assert (reply.status_code, reply.json()["error"]) == (400, error)
    assert Chat.objects.count() == 1


def test_anothers_chat_cannot_be_written_to(as_ada, grace):
    chat = Chat.objects.create(user=grace)
    assert as_ada.post(f"/chats/{chat.pk}/messages", {"text": "Hello"}).status_code == 404
    assert not chat.messages.exists()


def test_writes_need_the_csrf_token(ada, chat, generation):
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    for path in ("/chats/", f"/chats/{chat.pk}/messages", f"/generations/{generation.pk}/stop"):
        assert client.post(path, {"text": "Hello"}).status_code == 403


def test_writes_are_posts(as_ada, chat, generation):
    for path in ("/chats/", f"/chats/{chat.pk}/messages", f"/generations/{generation.pk}/stop"):
        assert as_ada.get(path).status_code == 405


def test_without_a_worker_the_message_is_kept_and_waits(as_ada):
    reply = as_ada.post("/chats/", {"text": "Anybody there?"})
    assert reply.status_code == 201
    assert Generation.objects.get().state == "queued"


def test_without_redis_the_message_is_kept_and_its_answer_says_what_to_do(as_ada, redis_away, chat):
    reply = as_ada.post(f"/chats/{chat.pk}/messages", {"text": "Anybody there?"})
    assert reply.status_code == 201
    assert re.search("The model can&#x27;t be reached..*“Regenerate” tries again.", reply.json()["html"])
    assert chat.messages.filter(content="Anybody there?").exists()
    assert Generation.objects.get().state == "failed"


def test_stop_tells_the_workers(as_ada, generation):
    asyncio.run(occupancy.put({"worker": "w1", "at": time.time()}))
    write_log(generation, Accepted(5, 1, -1))
    assert as_ada.post(f"/generations/{generation.pk}/stop").status_code == 202
    fields = last_entry(CONTROL)
    assert fields[b"kind"] == b"cancel"
    assert fields[b"id"].decode() == generation.id.hex
    generation.refresh_from_db()
    assert generation.state == "queued"  # the worker tells when it has ended


def test_stop_without_a_worker_ends_what_has_not_begun(as_ada, generation):
    as_ada.post(f"/generations/{generation.pk}/stop")
    generation.refresh_from_db()
    assert generation.state == "cancelled"


def test_stop_of_what_no_worker_will_ever_have_ends_it(as_ada, generation):
    asyncio.run(occupancy.put({"worker": "w1", "at": time.time()}))
    as_ada.post(f"/generations/{generation.pk}/stop")
    generation.refresh_from_db()
    assert generation.state == "cancelled"


def test_stop_of_what_is_over_changes_nothing(as_ada, generation):
    Generation.objects.update(state="finished")
    assert as_ada.post(f"/generations/{generation.pk}/stop").status_code == 202
    generation.refresh_from_db()
    assert generation.state == "finished"


def test_anothers_generation_cannot_be_stopped(client, grace, generation):
    client.force_login(grace)
    assert client.post(f"/generations/{generation.pk}/stop").status_code == 404


def test_stop_without_redis_says_to_try_again(as_ada, redis_away, generation):
    reply = as_ada.post(f"/generations/{generation.pk}/stop")
    assert reply.status_code == 503
    assert json.loads(reply.content)["error"].endswith("Try again in a moment.")
