"""Who is shut out while his stream runs: it ends, its generation is cancelled, nobody else's is touched."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from inference import revocation
from inference.broker.connect import sync_client
from inference.broker.control import ControlReader
from inference.broker.keys import BELL
from inference.broker.publisher import Publisher
from inference.messages import Accepted, Event, Started, Token
from inference.models import ApiKey, Chat, Generation, UserLimits
from project.asgi import application
from tests.api.play import Client, working
from tests.broker.play import END, show
from tests.dashboard.test_monitor_feed import Socket
from tests.e2e.api import until

from .conftest import cancelled, cookie_of
from .test_keys import ENDS, revoke


def signed_in(user: User) -> Browser:
    browser = Browser()
    browser.force_login(user)
    return browser


def cookies(browser: Browser) -> str:
    return "; ".join(f"{name}={morsel.value}" for name, morsel in browser.cookies.items())


BEGUN: tuple[Event, ...] = (Accepted(3, 1, 9), Started(0), Token(1, "once"))
WITH_N = {"prompt": "x", "stream": True, "n": 2}
STREAM = {"prompt": "x", "stream": True}


@pytest.fixture(autouse=True)
def _soon(monkeypatch) -> None:
    monkeypatch.setattr(revocation, "LOOK_EVERY_S", 0.01)
    monkeypatch.setattr(revocation, "AGAIN_S", 0.5)


async def new_key(owner: User | None = None) -> tuple[ApiKey, dict[str, str]]:
    row, plain = await sync_to_async(ApiKey.objects.create_key)("laptop", owner)
    return row, {"Authorization": f"Bearer {plain}"}


@pytest.mark.parametrize("end", ENDS)
async def test_a_stream_ends_with_its_key_and_its_generation_is_cancelled(end, ada):
    row, key = await new_key(ada)
    async with working() as worker:
        client = Client("POST", "/v1/completions", STREAM, **key)
        job = await worker.takes()
        await worker.says(job, *BEGUN)
        await client.hears("once")
        await sync_to_async(end)(row)
        await client.ends()
        await worker.is_told_to_cancel(job)
    assert client.status == 200  # it was open
    error = client.chunks[-1]["error"]
    assert error["code"] == "invalid_api_key"
    assert error["type"] == "authentication_error"
    assert "may not be used any more" in error["message"]
    assert "[DONE]" not in client.body.decode()


@pytest.mark.parametrize("path", ["/completion", "/v1/completions"])
async def test_so_does_a_stream_of_several_choices(path, ada):
    row, key = await new_key(ada)
    async with working() as worker:
        client = Client("POST", path, WITH_N, **key)
        job = await worker.takes()
        await worker.says_of(job, 0, *BEGUN)
        await client.hears("once")
        await sync_to_async(revoke)(row)
        await client.ends()
        await worker.is_told_to_cancel(job)
    assert "may not be used any more" in client.chunks[-1]["error"]["message"]


async def test_a_request_that_is_not_streamed_is_a_401(ada):
    row, key = await new_key(ada)
    async with working() as worker:
        client = Client("POST", "/completion", {"prompt": "x"}, **key)
        job = await worker.takes()
        await worker.says(job, *BEGUN)
        await sync_to_async(revoke)(row)
        await client.ends()
        await worker.is_told_to_cancel(job)
    assert client.status == 401


async def test_the_streams_of_other_keys_go_on(ada, grace):
    row, key = await new_key(ada)
    _, other = await new_key(grace)
    async with working() as worker:
        stays = Client("POST", "/completion", STREAM, **other)
        job = await worker.takes()
        goes = Client("POST", "/completion", STREAM, **key)
        await worker.says(await worker.takes(), *BEGUN)
        await worker.says(job, *BEGUN)
        await goes.hears("once")
        await sync_to_async(revoke)(row)
        await goes.ends()
        await worker.says(job, Token(2, " more"), END)
        await stays.ends()
    assert "".join(chunk["content"] for chunk in stays.chunks) == "once more"


async def test_streams_go_on_while_the_database_is_away_and_end_when_it_is_back(ada, monkeypatch):
    row, key = await new_key(ada)
    asked, ask = asyncio.Semaphore(0), revocation._ask
    is_away = True

    async def away(grants: Any) -> Any:
        asked.release()
        if is_away:
            raise OperationalError("the database is away")
        return await ask(grants)

    monkeypatch.setattr(revocation, "_ask", away)
    async with working() as worker:
        client = Client("POST", "/completion", STREAM, **key)
        job = await worker.takes()
        await worker.says(job, *BEGUN)
        await sync_to_async(revoke)(row)
        for _ in range(3):
            await asked.acquire()
        await worker.says(job, Token(2, " more"))
        await client.hears("more")
        assert not client.is_complete
        is_away = False
        await client.ends()
    assert client.chunks[-1]["error"]["code"] == 401


async def test_the_limits_of_a_key_hold_for_its_next_request_not_for_a_stream_that_runs(ada):
    row, key = await new_key(ada)
    async with working() as worker:
        client = Client("POST", "/completion", STREAM, **key)
        job = await worker.takes()
        await worker.says(job, *BEGUN)
        await sync_to_async(UserLimits.objects.create)(user=ada, max_concurrent=1)
        await sync_to_async(ApiKey.objects.filter(pk=row.pk).update)(max_output=1, max_concurrent=1)
        await worker.says(job, END)
        await client.ends()
    assert client.status == 200


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


async def the_bell_can_be_heard() -> None:
    def is_heard() -> bool:
        return bool(sync_client().pubsub_numsub(BELL)[0][1])

    await sync_to_async(until, thread_sensitive=False)(is_heard)


async def test_signing_out_is_heard_at_once(generation, ada, monkeypatch):
    monkeypatch.setattr(revocation, "LOOK_EVERY_S", 3600)
    browser = await sync_to_async(signed_in)(ada)
    client = await follow(generation, cookies(browser))
    await the_bell_can_be_heard()
    await sync_to_async(sign_out)(browser, ada)
    await client.ends()


async def test_a_revoked_key_is_heard_at_once(ada, monkeypatch):
    monkeypatch.setattr(revocation, "LOOK_EVERY_S", 3600)
    row, key = await new_key(ada)
    async with working() as worker:
        client = Client("POST", "/v1/completions", STREAM, **key)
        job = await worker.takes()
        await worker.says(job, *BEGUN)
        await client.hears("once")
        await the_bell_can_be_heard()
        browser = await sync_to_async(signed_in)(ada)
        await sync_to_async(browser.post)(f"/account/keys/{row.pk}/revoke/")
        await client.ends()
    assert "may not be used any more" in client.chunks[-1]["error"]["message"]


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


async def test_a_stream_that_swallows_its_cancellation_is_cancelled_again(ada, monkeypatch):
    monkeypatch.setattr(revocation, "AGAIN_S", 0.01)
    row, _ = await new_key(ada)

    async def stream() -> None:
        async with revocation.as_long_as(revocation.Grant("key", row.pk)):
            await sync_to_async(revoke)(row)
            with contextlib.suppress(asyncio.CancelledError):  # as a library of ours can
                await asyncio.Event().wait()
            await asyncio.Event().wait()

    task = asyncio.create_task(stream())
    with pytest.raises(revocation.Revoked):
        await task
    assert not task.cancelling()


async def test_a_client_who_leaves_meanwhile_is_not_told_of_a_revocation(ada):
    row, _ = await new_key(ada)
    ended = asyncio.Event()

    async def stream() -> None:
        async with revocation.as_long_as(revocation.Grant("key", row.pk)):
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

    task = asyncio.create_task(stream())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert ended.is_set()
    assert task.cancelled()
