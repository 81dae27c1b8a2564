"""Cancel, park and release from the admin: who may, what is asked of the worker, what is said and kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from inference.broker import log
from inference.broker.connect import sync_client
from inference.broker.keys import CONTROL, event_log
from inference.messages import Answer, encode_event
from inference.models import Generation, OperatorAction
from tests.dashboard.test_by_hand import show_a_worker

from .play import generation

pytestmark = pytest.mark.django_db
LIST = "/admin/inference/generation/"
MAY = ("view_generation", "change_generation")


class Worker(threading.Thread):
    """Answers commands in turn: done, unless it is told to refuse."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.commands: list[dict[bytes, bytes]] = []
        self.refusal: dict[str, Any] | None = None

    def run(self) -> None:
        last: Any = "0"
        while True:
            reply: Any = sync_client().xread({CONTROL: last}, block=9000)
            for id, command in reply[0][1] if reply else []:
                last = id
                if command[b"kind"] == b"end":
                    return
                self.commands.append(command)
                done = {"id_slot": 1, "id": command[b"id"].decode(), "worker": "w1", "is_held": True}
                answer = log.encode([encode_event(Answer(self.refusal or done))])
                sync_client().xadd(event_log(command[b"reply"].decode()), {"e": answer}, id="1-0")


@pytest.fixture
def worker() -> Iterator[Worker]:
    show_a_worker()
    worker = Worker()
    worker.start()
    yield worker
    sync_client().xadd(CONTROL, {"kind": "end"})
    worker.join(10)


@pytest.fixture
def running() -> Generation:
    return generation(state="running", finished_at=None, finish_reason="")


def act(client, kind: str, *chosen: Generation, **more: str) -> str:
    fields: dict[str, Any] = {"action": kind, "_selected_action": [str(one.pk) for one in chosen], **more}
    page: str = client.post(LIST, fields, follow=True).text
    return page


@pytest.mark.parametrize("kind", ["park", "unpark"])
def test_an_operator_parks_and_releases_and_it_is_kept_who_did(kind, staff_with, worker, running):
    page = act(staff_with(*MAY), kind, running)
    assert f"{running} {'parked and held' if kind == 'park' else 'released'}" in page
    [command] = worker.commands
    assert (command[b"kind"].decode(), command[b"id"].decode()) == (kind, running.id.hex)
    entry = OperatorAction.objects.get()
    assert (entry.kind, entry.by, entry.generation, entry.worker) == (kind, "ada", running.pk, "w1")


def test_a_cancel_asks_first_and_then_is_done_and_kept(staff_with, running):
    client = staff_with(*MAY)
    page = act(client, "cancel", running)
    assert "This ends 1 generation for good" in page
    assert not sync_client().exists(CONTROL)
    assert "told to end" in act(client, "cancel", running, confirmed="yes")
    commands: Any = sync_client().xrange(CONTROL)
    [(_, command)] = commands
    assert (command[b"kind"].decode(), command[b"id"].decode()) == ("cancel", running.id.hex)
    entry = OperatorAction.objects.get()
    assert (entry.kind, entry.by, entry.slot, entry.worker) == ("cancel", "ada", -1, "")


@pytest.mark.parametrize("kind", ["park", "unpark", "cancel"])
def test_who_may_only_view_sees_no_action_and_can_do_none(kind, staff_with, running):
    show_a_worker()
    client = staff_with("view_generation")
    for url in (LIST, f"{LIST}{running.pk}/change/"):
        page = client.get(url).text
        assert str(running.id.hex[:8]) in page
        assert "Park and hold" not in page
        assert 'name="action"' not in page
    act(client, kind, running, confirmed="yes")
    assert not sync_client().exists(CONTROL)
    assert not OperatorAction.objects.exists()


def test_who_may_only_view_cannot_act_by_the_monitor_either(staff_with, running):
    show_a_worker()
    reply = staff_with("view_generation").post(
        "/monitor/park", {"worker": "w1", "generation": running.id.hex}
    )
    assert reply.status_code == 403
    assert "not act on them" in reply.json()["error"]
    assert not sync_client().exists(CONTROL)


def test_an_operator_can_act_and_still_not_edit(staff_with, running):
    client = staff_with(*MAY)
    url = f"{LIST}{running.pk}/change/"
    page = client.get(url).text
    assert "Park and hold" in page
    assert 'name="_save"' not in page
    assert client.post(url, {"state": "failed"}).status_code == 403


def test_the_buttons_of_its_page_lead_back_to_it(staff_with, worker, running):
    client = staff_with(*MAY)
    fields = {"action": "park", "_selected_action": str(running.pk), "_page": "yes"}
    reply = client.post(LIST, fields)
    assert reply.headers["Location"] == f"{LIST}{running.pk}/change/"


def test_what_the_worker_refuses_is_said_for_each(staff_with, worker, running):
    worker.refusal = {"status": 409, "error": "The chat in slot 1 is parked already."}
    page = act(staff_with(*MAY), "park", running)
    assert f"{running}: The chat in slot 1 is parked already." in page
    assert not OperatorAction.objects.exists()


def test_what_is_over_is_left_alone(staff_with, worker):
    over = generation()
    assert "has ended" in act(staff_with(*MAY), "park", over)
    assert worker.commands == []


def test_without_a_worker_the_first_answer_is_enough(staff_with, running):
    other = generation(state="running", finished_at=None)
    page = act(staff_with(*MAY), "park", running, other)
    assert page.count("No worker is running.") == 1


def test_without_redis_it_says_so(staff_with, running, redis_server):
    client = staff_with(*MAY)
    redis_server.kill()
    assert "can&#x27;t be reached" in act(client, "cancel", running, confirmed="yes")
    assert not OperatorAction.objects.exists()


def test_a_button_of_a_running_ones_page_and_none_of_what_is_over(staff_with, running):
    client = staff_with(*MAY)
    assert 'class="operate"' in client.get(f"{LIST}{running.pk}/change/").text
    assert 'class="operate"' not in client.get(f"{LIST}{generation().pk}/change/").text


def test_the_states_of_rows_are_told_to_who_may_view_them(staff_with, running, client, django_user_model):
    url = f"{LIST}states/?id={running.id.hex}&id=zz&id={'0' * 32}&id=0123"
    assert staff_with("view_generation").get(url).json() == {running.id.hex: ["running", "Running"]}
    client.force_login(django_user_model.objects.create_user("grace", is_staff=True))
    assert client.get(url).status_code == 403
