"""An answer that nobody has any more is asked for again, out of its rows; one that had begun fails."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from dashboard import conversation, lost, stream
from inference import limits
from inference.broker import jobs, occupancy
from inference.broker.connect import sync_client
from inference.broker.keys import JOBS
from inference.broker.publisher import Publisher
from inference.messages import Accepted, Finished, Job, Preempted, Timings, Token
from inference.models import Chat, Generation

from .test_send import last_job, write_log
from .test_stream import decoded

pytestmark = pytest.mark.django_db(transaction=True)

END = Finished("eos", "", "", 5, 2, False, 0, Timings(), 0, 0.0, 0.1)
ACCEPTED, PARKED = Accepted(5, 1, -1), Preempted(-1, "admission", 0, 0)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost, "AGAIN_AFTER", 0.0)
    monkeypatch.setattr(lost, "LOST_AFTER", 0.0)
    monkeypatch.setattr(stream, "KEEPALIVE_S", 0.02)


@pytest.fixture
def asked(as_ada, ada) -> Generation:
    """The answer to ada's message."""
    as_ada.post("/chats/", {"text": "Tell me of boats"})
    return Generation.objects.get(user=ada)


def lose(**places: Any) -> None:
    """Redis comes back without its data, and a worker that has this."""
    sync_client().flushdb()
    asyncio.run(occupancy.put({"worker": "w1", **places}))


async def read(generation: Generation, user, *told: Any, first: tuple[Any, ...] = ()) -> list[Any]:
    """What a reader hears to whom, once the job is there again, a worker tells this; `first` is told before
    all is lost."""
    id, publisher = generation.id.hex, Publisher("w1")
    heard: list[Any] = []
    if first:
        await publisher.publish([(id, seq, event) for seq, event in enumerate(first, 1)])
    async with aclosing(stream.follow(generation, user, 0)) as chunks:
        async for chunk in chunks:
            heard += [event for event in decoded(chunk) if event[1] != "now"]
            if first and len(heard) == len(first):
                await sync_to_async(lose)()
                first = ()
            if not first and told and sync_client().xlen(JOBS):
                await publisher.publish([(id, seq, event) for seq, event in enumerate(told, 1)])
                told = ()
    return [(kind, data) for _, kind, data in heard if kind != "accepted"]


async def test_what_was_lost_in_the_queue_is_asked_for_again_and_its_reader_hears_the_answer(asked, ada):
    before = await sync_to_async(last_job)()
    await sync_to_async(lose)()
    heard = await read(asked, ada, ACCEPTED, Token(1, "They float"), END)
    after = await sync_to_async(last_job)()
    assert (after.id, after.body, after.owner) == (before.id, before.body, before.owner)
    assert heard[:2] == [("text", ""), ("token", "They float")]


async def test_so_is_what_was_parked_before_it_began(asked, ada):
    heard = await read(asked, ada, ACCEPTED, Token(1, "They float"), END, first=(ACCEPTED, PARKED))
    assert [kind for kind, _ in heard] == ["preempted", "text", "token", "finished"]


async def test_what_had_begun_fails_and_says_what_to_do(asked, ada):
    asked.started_at = timezone.now()
    await asked.asave()
    await sync_to_async(lose)()
    *_, (kind, data) = await read(asked, ada)
    assert (kind, data["note"]) == ("failed", "This answer was lost when the server was restarted.")
    assert data["advice"] == "“Continue” goes on from here."
    assert data["advice_without_text"] == "“Regenerate” tries again."
    await asked.arefresh_from_db()
    assert asked.state == "failed"
    assert not sync_client().exists(JOBS)


def test_an_answer_is_asked_for_as_it_was_also_while_another_version_is_read(asked, as_ada):
    chat = Chat.objects.get()
    chat.system_prompt, chat.seed = "Be brief.", 7
    chat.save()
    Generation.objects.update(state="failed")
    as_ada.post(f"/messages/{chat.messages.get(role='user').pk}/edit", {"text": "Tell me of ships"})
    edited = Generation.objects.latest("created_at")
    wanted = last_job()
    chat.refresh_from_db()
    chat.show(asked.message)
    again = Job.from_json(conversation.job(Generation.objects.get(pk=edited.pk)).to_json())
    assert (again.id, again.body) == (wanted.id, wanted.body)
    assert again.account == wanted.account == limits.name_of(chat.user)


@pytest.mark.parametrize("where", ["in the queue", "at a worker", "in a log", "nowhere", "too young to tell"])
def test_the_next_message_waits_for_a_lost_answer_which_is_asked_for_once(asked, as_ada, where):
    id = asked.id.hex
    lose(slots=[{"generation": id}] if where == "at a worker" else [])
    if where != "too young to tell":
        Generation.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    if where == "in the queue":
        jobs.submit_sync(Job(id, "generate", {}, ""))
    if where == "in a log":
        write_log(asked, ACCEPTED)
    for _ in range(2):
        assert as_ada.post(f"/chats/{Chat.objects.get().pk}/messages", {"text": "And?"}).status_code == 409
    assert sync_client().xlen(JOBS) == (where in ("in the queue", "nowhere"))
    asked.refresh_from_db()
    assert asked.state == "queued"
