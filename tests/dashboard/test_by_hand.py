"""The monitor's buttons: park and hold, release."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from inference.broker import connect, log, occupancy
from inference.broker.connect import sync_client
from inference.broker.keys import CONTROL, event_log
from inference.messages import Answer, Preempted, Released, encode_event
from inference.models import OperatorAction, UserLimits
from tests.broker.play import picture
from tests.dashboard.test_events import read
from tests.dashboard.test_send import last_job

pytestmark = pytest.mark.django_db
ID = uuid.uuid4()
CHAT = {"worker": "w1", "generation": ID.hex}
KINDS = ("park", "unpark", "cancel", "prioritise", "drain", "undrain")
CHATS_ANSWER = {"id_slot": 1, "id": ID.hex, "worker": "w1"}
DONE = {"id_slot": 1, "id": ID.hex, "worker": "w1", "is_held": True}


@pytest.fixture
def as_staff(client: Client, staff) -> Client:
    client.force_login(staff)
    return client


def show_a_worker(**more: Any) -> None:
    async def put() -> None:
        await occupancy.put(picture(**more))
        await connect.close()

    asyncio.run(put())


class Worker(threading.Thread):
    """Gives the next command this answer."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self.answer = answer
        self.command: dict[bytes, bytes] = {}

    def run(self) -> None:
        reply: Any = None
        while not reply:
            reply = sync_client().xread({CONTROL: "0"}, block=1000)
        [(_, [(_, self.command)])] = reply
        answer = log.encode([encode_event(Answer(self.answer))])
        sync_client().xadd(event_log(self.command[b"reply"].decode()), {"e": answer}, id="1-0")


@pytest.fixture
def worker() -> Iterator[Worker]:
    show_a_worker()
    worker = Worker(DONE)
    worker.start()
    yield worker
    worker.join(10)


@pytest.mark.parametrize(
    ("kind", "more", "outcome", "detail"),
    [
        ("park", {}, {"is_held": True}, ""),
        ("unpark", {}, {"is_held": False}, ""),
        ("cancel", {}, {"n_decoded": 7}, "after 7 tokens"),
        ("prioritise", {"priority": -1}, {"was": 0, "priority": -1}, "from normal to high"),
    ],
)
def test_staff_can_do_it_and_it_is_kept_who_did(as_staff, staff, worker, kind, more, outcome, detail):
    worker.answer = CHATS_ANSWER | outcome
    reply = as_staff.post(f"/monitor/{kind}", CHAT | more)
    assert (reply.status_code, reply.json()) == (200, CHATS_ANSWER | outcome)
    assert worker.command[b"kind"].decode() == kind
    assert (worker.command[b"id"].decode(), worker.command[b"worker"]) == (ID.hex, b"w1")
    assert worker.command[b"priority"].decode() == str(more.get("priority", 0))
    entry = OperatorAction.objects.get()
    assert (entry.kind, entry.user, entry.by, entry.generation) == (kind, staff, "root", ID)
    assert (entry.slot, entry.worker, entry.detail) == (1, "w1", detail)


@pytest.mark.parametrize("kind", ["drain", "undrain"])
def test_what_is_done_with_a_worker_names_no_chat(as_staff, worker, kind):
    worker.answer = {"worker": "w1", "is_draining": kind == "drain"}
    assert as_staff.post(f"/monitor/{kind}", {"worker": "w1"}).json() == worker.answer
    assert (worker.command[b"kind"].decode(), worker.command[b"id"]) == (kind, b"")
    entry = OperatorAction.objects.get()
    assert (entry.kind, entry.generation, entry.slot, entry.worker) == (kind, None, -1, "w1")


@pytest.mark.parametrize("kind", KINDS)
def test_staff_without_the_permission_see_and_cannot_act(client, onlooker, kind):
    show_a_worker()
    client.force_login(onlooker)
    page = client.get("/monitor/")
    assert (page.status_code, page.context["may_operate"]) == (200, False)
    reply = client.post(f"/monitor/{kind}", CHAT | {"priority": 1})
    assert reply.status_code == 403
    assert "may look at other people's chats, and not act" in reply.json()["error"]
    assert not sync_client().exists(CONTROL)
    assert not OperatorAction.objects.exists()


def test_a_worker_that_drains_can_still_be_told_what_to_do(as_staff, worker):
    show_a_worker(state="draining")
    worker.answer = DONE
    assert as_staff.post("/monitor/park", CHAT).status_code == 200


def test_a_worker_that_is_gone_is_said_to(as_staff):
    show_a_worker()
    reply = as_staff.post("/monitor/drain", {"worker": "w2"})
    assert (reply.status_code, reply.json()) == (400, {"error": 'There is no worker "w2": there is w1.'})


@pytest.mark.parametrize("priority", ["", "x", "101", "-101"])
def test_a_priority_must_be_one(as_staff, priority):
    show_a_worker()
    reply = as_staff.post("/monitor/prioritise", CHAT | {"priority": priority})
    assert reply.status_code == 400
    assert "a priority from -100 to 100" in reply.json()["error"]
    assert not sync_client().exists(CONTROL)


def test_what_the_worker_refuses_is_said_and_leaves_no_trace(as_staff, worker):
    worker.answer = {"status": 409, "error": "The chat in slot 1 is parked already."}
    reply = as_staff.post("/monitor/park", CHAT)
    assert (reply.status_code, reply.json()) == (409, {"error": "The chat in slot 1 is parked already."})
    assert not OperatorAction.objects.exists()


@pytest.mark.parametrize("kind", KINDS)
def test_others_cannot(client, as_ada, kind):
    show_a_worker()
    assert as_ada.post(f"/monitor/{kind}", CHAT).status_code == 403
    client.logout()
    assert client.post(f"/monitor/{kind}", CHAT).status_code == 302
    assert not sync_client().exists(CONTROL)


def test_it_needs_the_csrf_token_and_a_post(staff):
    show_a_worker()
    client = Client(enforce_csrf_checks=True)
    client.force_login(staff)
    assert client.post("/monitor/park", CHAT).status_code == 403
    assert client.get("/monitor/park", CHAT).status_code == 405
    assert not sync_client().exists(CONTROL)


@pytest.mark.parametrize("fields", [{}, {"worker": "w1"}, {"worker": "w1", "generation": "x"}])
def test_which_chat_must_be_said(as_staff, fields):
    show_a_worker()
    reply = as_staff.post("/monitor/park", fields)
    assert reply.status_code == 400
    assert "which chat" in reply.json()["error"]


def test_without_a_worker_or_without_redis_it_says_so(as_staff, redis_server):
    reply = as_staff.post("/monitor/park", CHAT)
    assert (reply.status_code, reply.json()) == (503, {"error": "No worker is running."})
    redis_server.kill()
    reply = as_staff.post("/monitor/park", CHAT)
    assert reply.status_code == 503
    assert reply.json()["error"].endswith("Try again in a moment.")


def test_the_reader_of_a_held_chat_is_told_why_it_waits():
    from dashboard import events

    held = read(events.event(ID.hex, 4, Preempted(0, "hand", 90, 1000), time.time()))
    assert (held[1], held[2]["cause"]) == ("preempted", "hand")
    assert read(events.event(ID.hex, 5, Released()))[1:] == ("released", {})


@pytest.mark.parametrize(("ceiling", "meant"), [(-5, 0), (0, 0), (1, 1)])
def test_a_chat_is_normal_or_as_low_as_the_ceiling_of_its_owner(as_ada, ada, ceiling, meant):
    UserLimits.objects.create(user=ada, max_priority=ceiling)
    as_ada.post("/chats/", {"text": "Hello"})
    assert last_job().body["priority"] == meant
    assert ada.generations.get().priority == meant
