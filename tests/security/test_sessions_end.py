"""A person or session that is shut out while a page's stream runs: it ends, nobody else's is touched."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inference import revocation
from inference.broker.control import ControlReader
from inference.broker.publisher import Publisher
from inference.messages import Token
from inference.models import Chat, Generation
from project.asgi import application
from tests.api.play import Client
from tests.broker.play import show
from tests.dashboard.test_monitor_feed import Socket

from .conftest import cancelled, cookie_of
from .play import BEGUN, cookies, signed_in, the_bell_can_be_heard

pytestmark = pytest.mark.usefixtures("soon")


@pytest.mark.parametrize("shut_out", [lambda user: user.delete(), "is_active"])
async def test_the_stream_of_a_chat_ends_with_its_reader_and_its_generation_is_cancelled(
    shut_out, generation, ada
):
    await show()
    events = [(generation.id.hex, seq, event) for seq, event in enumerate(BEGUN, 1)]
    await Publisher("w1").publish(events)
    cookie = await sync_to_async(cookie_of)(ada)
    reader = ControlReader()
    client = Client("GET", f"/generations/{generation.pk}/events", Cookie=cookie)
    await client.hears("once")
    if callable(shut_out):
        await sync_to_async(shut_out)(ada)
    else:
        await sync_to_async(User.objects.filter(pk=ada.pk).update)(is_active=False)
    await client.ends()
    assert "finished" not in client.body.decode()
    commands: list[tuple[str, str]] = []
    while ("cancel", generation.id.hex) not in commands:
        commands += [(command.kind, command.id) for command in await reader.read()]
    again = await Client("GET", f"/generations/{generation.pk}/events", Cookie=cookie).ends()
    assert again.status == 404


@pytest.mark.parametrize("field", ["is_active", "is_staff"])
async def test_the_monitor_closes_for_who_is_staff_no_longer(field, staff):
    await show()
    cookie = (await sync_to_async(cookie_of)(staff)).encode()
    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"cookie", cookie)]
    socket = Socket(application, "/ws/monitor/", headers)
    await socket.connect()
    await sync_to_async(User.objects.filter(pk=staff.pk).update)(**{field: False})
    while (message := await socket.receive_output(20))["type"] == "websocket.send":
        pass
    assert (message["type"], message["code"]) == ("websocket.close", 4403)


async def follow(generation: Any, cookie: str) -> Client:
    """The stream of a chat's page, once it writes."""
    await show()
    events = [(generation.id.hex, seq, event) for seq, event in enumerate(BEGUN, 1)]
    await Publisher("w1").publish(events)
    client = Client("GET", f"/generations/{generation.pk}/events", Cookie=cookie)
    await client.hears("once")
    return client


async def went_on(client: Client, generation: Any) -> bool:
    """Whether it hears what is written now."""
    await Publisher("w1").publish([(generation.id.hex, 4, Token(2, " more"))])
    await client.hears("more")
    is_open = not client.is_complete
    await client.leaves()
    return is_open


def sign_out(browser: Browser, user: User) -> None:
    assert browser.post("/accounts/logout/").status_code == 302


def sign_out_in_the_admin(browser: Browser, user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=True)
    assert browser.post("/admin/logout/").status_code == 302


def expire(browser: Browser, user: User) -> None:
    Session.objects.filter(session_key=browser.session.session_key).update(expire_date=timezone.now())


def change_password(browser: Browser, user: User) -> None:
    """Elsewhere."""
    user.set_password("another quiet word")
    user.save()


@pytest.mark.parametrize("end", [sign_out, sign_out_in_the_admin, expire, change_password])
async def test_a_stream_ends_with_its_session_and_the_answer_goes_on(end, generation, ada):
    browser = await sync_to_async(signed_in)(ada)
    client = await follow(generation, cookies(browser))
    await sync_to_async(end)(browser, ada)
    await client.ends()
    assert "finished" not in client.body.decode()
    assert not cancelled()


async def test_signing_out_ends_no_stream_of_another_session(generation, ada):
    here, there = await sync_to_async(signed_in)(ada), await sync_to_async(signed_in)(ada)
    client = await follow(generation, cookies(there))
    goes = Client("GET", f"/generations/{generation.pk}/events", Cookie=cookies(here))
    await goes.hears("once")
    await sync_to_async(sign_out)(here, ada)
    await goes.ends()
    assert await went_on(client, generation)


async def test_signing_out_is_heard_at_once(generation, ada, monkeypatch):
    monkeypatch.setattr(revocation, "LOOK_EVERY_S", 3600)
    browser = await sync_to_async(signed_in)(ada)
    client = await follow(generation, cookies(browser))
    await the_bell_can_be_heard()
    await sync_to_async(sign_out)(browser, ada)
    await client.ends()


async def test_the_monitor_closes_for_a_session_that_ended_so_that_the_page_comes_again(staff):
    await show()
    browser = await sync_to_async(signed_in)(staff)
    headers = [
        (b"host", b"localhost"),
        (b"origin", b"http://localhost"),
        (b"cookie", cookies(browser).encode()),
    ]
    socket = Socket(application, "/ws/monitor/", headers)
    await socket.connect()
    await sync_to_async(sign_out)(browser, staff)
    while (message := await socket.receive_output(20))["type"] == "websocket.send":
        pass
    assert (message["type"], message["code"]) == ("websocket.close", 4401)
    again = Socket(application, "/ws/monitor/", headers)
    await again.connect()
    assert await again.receive_output(20) == {"type": "websocket.close", "code": 4403}


def deactivate(user: User) -> None:
    """As the admin's form does."""
    user.is_active = False
    user.save()


@pytest.mark.parametrize("shut_out", [deactivate, User.delete])
def test_answers_that_nobody_reads_are_cancelled_with_their_person(shut_out, generation, ada, grace):
    hers = Chat.objects.create(user=grace)
    Generation.objects.create(user=grace, message=hers.add("assistant"))
    shut_out(ada)
    assert cancelled() == [generation.id.hex]


def test_all_sessions_of_a_process_cost_two_queries(ada, grace):
    grants = set()
    for user in (ada, grace, ada, grace):
        session = signed_in(user).session
        grants.add(revocation.of_session({"user": user, "session": session}))
    with CaptureQueriesContext(connection) as asked:
        assert revocation._holding(grants) >= grants
    assert len(asked) == 2
    assert len(grants) == 4
