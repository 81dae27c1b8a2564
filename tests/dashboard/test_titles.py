"""Titles that the model makes: when one is asked for, how, and what becomes of what it writes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from dashboard import titles
from inference.broker import log
from inference.broker.connect import sync_client
from inference.broker.keys import IN_FLIGHT, JOBS, PERMITS, changes, event_log
from inference.broker.records import RecordReader
from inference.messages import LOWEST, Failed, Finished, Job, Timings, Token, encode_event
from inference.models import Chat, Generation
from inference.recorder import Recorder

pytestmark = pytest.mark.django_db

QUESTION = "Which ropes does one need to sail a small boat?"


@pytest.fixture
def answered(ada) -> Generation:
    """The first answer of a chat, which has just ended."""
    chat = Chat.objects.create(user=ada, title=Chat.title_for(QUESTION))
    chat.add("user", QUESTION)
    answer = chat.add("assistant", "Halyards and sheets.")
    return Generation.objects.create(message=answer, user=ada, model="smol", state="finished")


def chat_of(generation: Generation) -> Chat:
    assert generation.message
    return Chat.objects.get(pk=generation.message.chat_id)


def jobs() -> list[Job]:
    found: Any = sync_client().xrange(JOBS)
    return [Job.from_json(fields[b"job"]) for _, fields in found]


def ends(id: str, *events) -> None:
    """The worker has written this, and a recorder knows it."""
    entry: dict[Any, Any] = {"e": log.encode([encode_event(event) for event in events])}
    sync_client().xadd(event_log(id), entry, id=f"{len(events)}-0")
    titles.look_at([id])


def finished(stop_type: Any = "eos", text: str = "") -> Finished:
    return Finished(stop_type, "", text, 5, 2, False, 0, Timings(), 0, 0.0, 0.1)


def asked(generation: Generation) -> Job:
    titles.look_at([generation.id.hex])
    [job] = jobs()
    return job


def test_the_first_answer_of_a_chat_has_a_title_asked_for(answered):
    job = asked(answered)
    assert job.body["messages"][-1]["content"].endswith(QUESTION)
    assert (job.body["priority"], job.body["max_tokens"]) == (LOWEST, titles.TOKENS)
    assert job.body["stream"] is False
    [(_, record)] = RecordReader().read() or RecordReader().read()  # the first makes the group
    assert record["kind"] == "submitted"
    assert record["data"] == {
        "api": "title",
        "model": "smol",
        "user_id": answered.user_id,
        "priority": LOWEST,
    }


def test_a_title_takes_no_room_from_anybodys_limit(answered):
    asked(answered)
    assert not sync_client().exists(PERMITS, IN_FLIGHT)


def test_what_the_model_writes_becomes_the_title(answered, ada):
    job = asked(answered)
    ends(job.id, Token(1, '"Ropes '), Token(2, "of a small"), finished(text=' boat"\n'))
    chat = chat_of(answered)
    assert (chat.title, chat.titled_by) == ("Ropes of a small boat", "model")
    assert sync_client().xlen(changes(ada.pk)) == 1
    assert len(jobs()) == 1


def test_a_title_does_not_lift_its_chat(answered):
    before = chat_of(answered).updated_at
    ends(asked(answered).id, Token(1, "Ropes of a boat"), finished())
    assert chat_of(answered).updated_at == before


def test_a_name_that_a_person_gave_meanwhile_stays(answered, as_ada):
    job = asked(answered)
    as_ada.post(f"/chats/{chat_of(answered).pk}/title", {"title": "Mine"})
    ends(job.id, Token(1, "Ropes of a boat"), finished())
    assert chat_of(answered).title == "Mine"


@pytest.mark.parametrize(
    "events",
    [
        [Failed(500, "server_error", "it broke")],
        [Token(1, "Ropes of"), finished("cancelled")],
        [Token(1, '"."'), finished()],
        [finished()],
        [Token(1, "You need a halyard for the main sail and two sheets for the jib"), finished("limit")],
    ],
)
def test_without_a_title_the_first_words_stay(answered, events):
    ends(asked(answered).id, *events)
    chat = chat_of(answered)
    assert (chat.title, chat.titled_by) == (Chat.title_for(QUESTION), "")


@pytest.mark.parametrize(
    "change",
    [
        lambda g: Chat.objects.update(titled_by="person"),
        lambda g: Chat.objects.update(deleted_at=g.created_at),
        lambda g: Generation.objects.update(state="failed"),
        lambda g: Generation.objects.update(state="running"),
        lambda g: g.message.parent.__class__.objects.filter(role="user").update(
            content="Ropes of a small boat?"
        ),
        lambda g: g.message.__class__.objects.filter(role="assistant").update(content=""),
        lambda g: Generation.objects.create(message=g.message, state="finished"),
    ],
    ids=["named", "deleted", "failed", "running", "short enough", "nothing written", "answered before"],
)
def test_no_title_is_asked_for(answered, change):
    change(answered)
    titles.look_at([answered.id.hex])
    assert jobs() == []


def test_a_later_answer_has_none_asked_for(answered):
    chat = chat_of(answered)
    chat.add("user", QUESTION)
    later = Generation.objects.create(message=chat.add("assistant", "Yes."), state="finished")
    Generation.objects.exclude(pk=later.pk).update(state="failed")
    titles.look_at([later.id.hex])
    assert jobs() == []


def test_generations_of_the_api_are_passed_over(ada):
    titles.look_at([Generation.objects.create(user=ada, state="finished").id.hex])
    assert jobs() == []


@pytest.mark.django_db(transaction=True)
def test_the_recorder_tells_of_ends_once_they_are_written(answered):
    Generation.objects.update(state="running")
    seen: list[Any] = []
    ids = [answered.id.hex]
    record = {"id": ids[0], "kind": "finished", "worker": "w", "at": 1.0, "data": asdict(finished())}

    class Reader:
        def read(self) -> list[Any]:
            return [("1-0", {**record, "kind": "started", "data": {"slot": 0}}), ("2-0", record)]

        def ack(self, entries: list[str]) -> None:
            seen.append(entries)

    def tell(ids: list[str]) -> None:
        seen.append((ids, Generation.objects.get().state))

    Recorder(Reader(), tell=tell).run_once()  # type: ignore[arg-type]
    assert seen == [["1-0", "2-0"], (ids, "finished")]


def test_a_thread_takes_what_it_is_told_and_outlives_what_it_cannot_do(monkeypatch):
    import queue

    done: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def look_at(ids: Any) -> None:
        done.put(ids)
        raise RuntimeError

    monkeypatch.setattr(titles, "look_at", look_at)
    tell = titles.start_thread()
    for ids in (["a"], ["b"]):
        tell(ids)
        assert done.get(timeout=60) == ids


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('"The capital"', "The capital"),
        ("Title: Boats", "Boats"),
        ('**Title:**\n"Boats and rope"', "Boats and rope"),
        ("\n\n# A title\nmore", "A title"),
        ("Titel: „Über das Meer“.", "Über das Meer"),
        ("Titles of books", "Titles of books"),
        ("A \0 title\t of   words", "A title of words"),
        ("<think>\nWhat would be", ""),
        ("…", ""),
        ("", ""),
        ("word " * (titles.MOST_WORDS + 1), ""),
        ("x" * 61, ""),
    ],
)
def test_what_a_small_model_writes_around_a_title_is_taken_off(text, title):
    assert titles.clean(text) == title
