"""POST /slots/{id}?action=park|unpark: who may, what is asked of which worker, and what is kept of it."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError

from inference.broker import control
from inference.broker.connect import async_client
from inference.broker.keys import CONTROL, event_log
from inference.models import ApiKey, OperatorAction
from tests.broker.play import picture, show

from .play import Client, create_key, fetch, working

PARK = "/slots/0?action=park"
ID = "5ebc1f5a" * 4
DONE = {"id_slot": 0, "id": ID, "worker": "w1", "is_held": True}


async def key_of(operates: bool = True, **user: Any) -> dict[str, str]:
    """The header of a new key whose owner is such a user, and has the permission to operate."""
    owner = await User.objects.acreate(username="ada", **user)
    if operates:
        await owner.user_permissions.aadd(await Permission.objects.aget(codename="change_generation"))
    return {"Authorization": f"Bearer {await asyncio.to_thread(create_key, 'laptop', owner)}"}


async def no_command_was_sent() -> bool:
    return not await async_client().exists(CONTROL) and not await OperatorAction.objects.aexists()


@pytest.mark.parametrize(
    ("path", "kind", "id"),
    [(PARK, "park", ""), ("/slots/0?action=unpark", "unpark", ""), (f"{PARK}&id={ID}&worker=w1", "park", ID)],
)
async def test_the_worker_is_asked_and_its_answer_is_the_reply(path, kind, id):
    key = await key_of(is_staff=True)
    async with working() as worker:
        client = Client("POST", path, {}, **key)
        command = await worker.answers(DONE)
        await client.ends()
    assert (client.status, client.json) == (200, DONE)
    assert (command.kind, command.id, command.worker, command.slot) == (kind, id, "w1", "0")
    assert not await async_client().exists(event_log(command.reply))


async def test_what_was_done_is_kept_with_who_did_it():
    key = await key_of(is_staff=True)
    async with working() as worker:
        client = Client("POST", PARK, {}, **key)
        await worker.answers(DONE)
        await client.ends()
    entry = await OperatorAction.objects.select_related("user", "api_key").aget()
    assert (entry.kind, entry.by, entry.slot, entry.worker) == ("park", "laptop", 0, "w1")
    assert entry.generation == uuid.UUID(hex=ID)
    assert (entry.user, entry.api_key) == (await User.objects.aget(), await ApiKey.objects.aget())


@pytest.mark.parametrize("status", [400, 404, 409])
async def test_what_the_worker_refuses_is_the_clients_error_and_leaves_no_trace(status):
    key = await key_of(is_staff=True)
    async with working() as worker:
        client = Client("POST", PARK, {}, **key)
        await worker.answers({"status": status, "error": "Slot 0 is idle."})
        await client.ends()
    assert client.status == status
    error = {"code": status, "message": "Slot 0 is idle.", "type": client.json["error"]["type"]}
    assert client.json == {"error": error}
    assert not await OperatorAction.objects.aexists()


@pytest.mark.parametrize(
    "user",
    [{"is_staff": False}, {"is_superuser": True}],
)
async def test_a_key_whose_owner_is_not_staff_may_not(user):
    await show()
    client = await fetch("POST", PARK, {}, **await key_of(**user))
    assert (client.status, client.json["error"]["type"]) == (403, "permission_error")
    assert "staff" in client.json["error"]["message"]
    assert await no_command_was_sent()


async def test_a_key_whose_owner_may_only_look_may_not():
    await show()
    client = await fetch("POST", PARK, {}, **await key_of(is_staff=True, operates=False))
    assert (client.status, client.json["error"]["type"]) == (403, "permission_error")
    assert "may look at other people's chats, and not act" in client.json["error"]["message"]
    assert await no_command_was_sent()


async def test_a_key_without_an_owner_or_of_the_command_line_may_not(options):
    await show()
    key = await asyncio.to_thread(create_key, "nobody's")
    assert (await fetch("POST", PARK, {}, Authorization=f"Bearer {key}")).status == 403
    options(api_keys=("secret",))
    assert (await fetch("POST", PARK, {}, Authorization="Bearer secret")).status == 403
    assert await no_command_was_sent()


async def test_without_a_key_it_is_a_401():
    await key_of(is_staff=True)
    await show()
    client = await fetch("POST", PARK, {})
    assert (client.status, client.json["error"]["type"]) == (401, "authentication_error")
    assert await no_command_was_sent()


async def test_on_loopback_without_keys_who_is_at_the_machine_may():
    async with working() as worker:
        client = Client("POST", PARK, {})
        await worker.answers(DONE)
        await client.ends()
    assert client.status == 200
    entry = await OperatorAction.objects.aget()
    assert (entry.by, entry.user_id) == ("anybody at this machine", None)


async def test_a_page_of_another_site_may_not_use_who_is_at_the_machine():
    await show()
    assert (await fetch("POST", PARK, {}, Origin="http://elsewhere.example")).status == 403
    assert await no_command_was_sent()


async def test_on_another_address_nobody_may_without_a_key(options):
    options(host="0.0.0.0", allow_anonymous=True)
    await show()
    assert (await fetch("POST", PARK, {})).status == 403
    assert await no_command_was_sent()


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("POST", "/slots/0", 400, "park or unpark"),
        ("POST", "/slots/0?action=stop", 400, "park or unpark"),
        ("POST", "/slots/one?action=park", 400, "must be a number"),
        ("POST", "/slots/-1?action=park", 400, "must be a number"),
        ("POST", "/slots/0?action=unpark&id=x", 400, "32 hex digits"),
        ("POST", f"{PARK}&worker=w9", 400, 'no worker "w9"'),
        ("POST", "/slots/0?action=save", 501, "not supported"),
        ("POST", "/slots/0?action=restore", 501, "not supported"),
        ("POST", "/slots/0?action=erase", 501, "not supported"),
        ("GET", PARK, 405, "use POST"),
    ],
)
async def test_each_mistake_has_its_own_error_and_asks_no_worker(method, path, status, words):
    await show()
    client = await fetch(method, path, {})
    assert client.status == status
    assert words in client.json["error"]["message"]
    assert await no_command_was_sent()


async def test_where_slots_are_not_served_nothing_can_be_done_to_them(options):
    options(slots=False)
    await show()
    assert (await fetch("POST", PARK, {})).status == 501


async def test_without_a_worker_it_is_a_503():
    client = await fetch("POST", PARK, {})
    assert (client.status, client.json["error"]["message"]) == (503, "No worker is running.")


async def test_a_worker_that_dies_before_it_answers_is_a_503(monkeypatch):
    monkeypatch.setattr(control, "ANSWER_S", 0.01)
    await show()
    client = await fetch("POST", PARK, {})
    assert client.status == 503
    assert "has not answered" in client.json["error"]["message"]
    assert not await OperatorAction.objects.aexists()


async def test_of_several_workers_one_must_be_named_by_its_name_or_its_chat(monkeypatch):
    monkeypatch.setattr(control, "ANSWER_S", 0.01)
    await show(worker="w1")
    slot = picture()["slots"][0] | {"generation": ID, "state": "decode"}
    await show(worker="w2", slots=[slot])
    assert "w1 or w2" in (await fetch("POST", PARK, {})).json["error"]["message"]
    assert await no_command_was_sent()
    reader = control.ControlReader()
    for more in ("&worker=w2", f"&id={ID}"):
        await fetch("POST", PARK + more, {})
        (command,) = await reader.read()
        assert command.worker == "w2"


async def test_a_worker_that_starts_late_does_not_do_what_its_predecessor_was_asked(monkeypatch):
    monkeypatch.setattr(control, "ANSWER_S", 0.01)
    await show()
    await fetch("POST", PARK, {})
    await control.cancel(ID)
    assert await control.ControlReader().read() == [control.Command("cancel", ID)]


async def test_a_database_that_is_away_does_not_undo_what_was_done(monkeypatch, caplog):
    def away(**fields: Any) -> None:
        raise DatabaseError("the database is away")

    monkeypatch.setattr(OperatorAction.objects, "create", away)
    async with working() as worker:
        client = Client("POST", PARK, {})
        await worker.answers(DONE)
        await client.ends()
    assert client.status == 200
    assert any(ID in record.getMessage() for record in caplog.records)
