"""Whatever is another's is not there: the same answer as for what never was."""

from __future__ import annotations

import uuid

import pytest
from asgiref.sync import sync_to_async
from django.test import Client as Browser
from django.urls import URLPattern, reverse
from django.utils import timezone

from dashboard import urls as dashboard
from inference.broker.connect import sync_client
from inference.broker.keys import CONTROL, JOBS
from inference.models import Chat, Generation, Message, Share
from tests.api.play import Client, fetch

from .conftest import SECRET, argument, cookie_of


@pytest.fixture(params=["grace", "staff"])
def other(request, client: Browser) -> Browser:
    """Signed in as somebody else; to be staff is no leave to read."""
    client.force_login(request.getfixturevalue(request.param))
    return client


def test_anothers_chat_cannot_be_read(other, chat):
    theirs, never = (other.get(f"/chats/{pk}/") for pk in (chat.pk, chat.pk + 1))
    assert theirs.status_code == never.status_code == 404
    assert SECRET not in theirs.text
    assert len(theirs.content) == len(never.content)


NAMED = [p for p in dashboard.urlpatterns if "<" in str(p.pattern)]  # addresses of one object


def statuses(browser: Browser, pattern: URLPattern, generation: Generation) -> list[int]:
    """Of a GET and a POST, less those that the address does not take."""
    url = reverse(pattern.name or "", args=argument(str(pattern.pattern), generation))
    fields = {"text": "x", "title": "x"}
    found = [browser.get(url).status_code, browser.post(url, fields).status_code]
    return [status for status in found if status != 405]


@pytest.mark.parametrize("pattern", [p for p in NAMED if p.name != "shared"], ids=lambda p: p.name)
def test_nothing_of_another_can_be_named(other, pattern, generation):
    before = Message.objects.count()
    assert set(statuses(other, pattern, generation)) == {404}
    assert Message.objects.count() == before
    assert not sync_client().exists(JOBS, CONTROL)
    assert Share.objects.filter(revoked_at=None).count() == Share.objects.count()


@pytest.mark.parametrize("pattern", [p for p in NAMED if p.name != "restore"], ids=lambda p: p.name)
def test_nothing_of_a_deleted_chat_is_there(client, ada, pattern, generation):
    client.force_login(ada)
    Chat.objects.update(deleted_at=timezone.now())
    assert set(statuses(client, pattern, generation)) == {404}
    assert not sync_client().exists(JOBS, CONTROL)


def test_anothers_chat_is_not_found_by_search(other, chat):
    assert other.get("/chats/search", {"q": SECRET}).json() == {"hits": [], "more": ""}


def test_who_is_not_signed_in_is_asked_to(client, generation):
    for pattern in dashboard.urlpatterns:
        if pattern.name not in ("offline", "service_worker", "shared"):
            url = reverse(pattern.name, args=argument(str(pattern.pattern), generation))
            assert client.get(url).status_code in (302, 405), url
            assert client.post(url).status_code in (302, 405), url


def test_anothers_chat_is_not_listed(other, chat):
    assert SECRET not in other.get("/").text


def test_anothers_chat_cannot_be_written_to(other, chat):
    theirs, never = (other.post(f"/chats/{pk}/messages", {"text": "x"}) for pk in (chat.pk, chat.pk + 1))
    assert theirs.status_code == never.status_code == 404
    assert Message.objects.count() == 1
    assert not sync_client().exists(JOBS)


def test_anothers_generation_cannot_be_stopped(other, generation):
    theirs, never = (other.post(f"/generations/{pk}/stop") for pk in (generation.pk, uuid.uuid4()))
    assert theirs.status_code == never.status_code == 404
    assert not sync_client().exists(CONTROL)


@pytest.mark.parametrize("what", ["edit", "regenerate", "continue", "show"])
def test_anothers_messages_can_be_neither_changed_nor_read(other, chat, generation, what):
    Generation.objects.update(state="cancelled")
    for message in chat.messages.all():
        theirs, never = (
            other.post(f"/messages/{pk}/{what}", {"text": "x"}) for pk in (message.pk, message.pk + 100)
        )
        assert theirs.status_code == never.status_code == 404
        assert SECRET not in theirs.text
    assert Message.objects.count() == 2
    assert not sync_client().exists(JOBS)


@pytest.fixture(params=["grace", "staff", None])
def cookie(request) -> dict[str, str]:
    """Of somebody else, or of nobody."""
    return {"Cookie": cookie_of(request.getfixturevalue(request.param))} if request.param else {}


async def test_anothers_stream_cannot_be_followed(cookie, generation):
    theirs = await fetch("GET", f"/generations/{generation.pk}/events", **cookie)
    never = await fetch("GET", f"/generations/{uuid.uuid4()}/events", **cookie)
    assert theirs.status == never.status == 404
    assert theirs.body == never.body
    assert not sync_client().exists(CONTROL)


async def test_the_stream_of_a_deleted_chat_cannot_be_followed(generation, ada):
    cookie = await sync_to_async(cookie_of)(ada)
    await sync_to_async(Chat.objects.update)(deleted_at=timezone.now())
    assert (await fetch("GET", f"/generations/{generation.pk}/events", Cookie=cookie)).status == 404


async def test_ones_own_stream_can(generation, ada):
    cookie = await sync_to_async(cookie_of)(ada)
    client = Client("GET", f"/generations/{generation.pk}/events", Cookie=cookie)
    await client.hears("waiting")
    await client.leaves()
    assert client.status == 200
