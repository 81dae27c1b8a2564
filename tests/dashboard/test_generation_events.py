from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from channels.routing import URLRouter
from channels.testing import HttpCommunicator
from django.contrib.auth.models import AnonymousUser
from django.urls import path

from dashboard.consumers import GenerationEvents
from inference import drain
from inference.broker.hub import hub
from inference.broker.publisher import Publisher
from inference.messages import Accepted, Failed

pytestmark = pytest.mark.django_db(transaction=True)
ROUTER = URLRouter([path("generations/<uuid:pk>/events", GenerationEvents.as_asgi())])


async def get(generation, user, *headers, method="GET", query="") -> Any:
    path = f"/generations/{generation.pk}/events{query}"
    request = HttpCommunicator(ROUTER, method, path, headers=list(headers))
    request.scope["user"] = user
    return await request.get_response(timeout=10)


async def publish_a_refusal(generation) -> None:
    id = generation.id.hex
    refusal = Failed(503, "unavailable_error", "it was stopped")
    await Publisher("w1").publish([(id, 1, Accepted(5, 1, -1)), (id, 2, refusal)])


async def test_the_owner_reads_an_event_stream(generation, ada):
    await publish_a_refusal(generation)
    reply = await get(generation, ada)
    assert reply["status"] == 200
    assert (b"content-type", b"text/event-stream; charset=utf-8") in reply["headers"]
    id = generation.id.hex
    retry, accepted, failed = reply["body"].strip().split(b"\n\n")
    assert retry == b"retry: 1000"
    assert accepted == f"id: {id}.1\nevent: accepted\ndata: {{}}".encode()
    assert failed.startswith(f"id: {id}.2\nevent: failed\n".encode())


async def test_it_goes_on_after_the_last_event_that_the_browser_has_seen(generation, ada):
    await publish_a_refusal(generation)
    reply = await get(generation, ada, (b"last-event-id", f"{generation.id.hex}.1".encode()))
    assert b"event: accepted" not in reply["body"]
    assert b"event: failed" in reply["body"]


async def test_a_last_event_that_is_none_is_taken_for_none(generation, ada):
    await publish_a_refusal(generation)
    reply = await get(generation, ada, (b"last-event-id", b"x"))
    assert b"event: accepted" in reply["body"]


async def test_a_page_can_say_in_the_url_what_it_has_seen(generation, ada):
    await publish_a_refusal(generation)
    reply = await get(generation, ada, query=f"?after={generation.id.hex}.1")
    assert b"event: accepted" not in reply["body"]
    assert b"event: failed" in reply["body"]


async def test_more_readers_than_there_may_be_are_refused(generation, ada, settings):
    settings.BERTH = replace(settings.BERTH, max_followers=1)
    async with hub().follow(generation.id.hex):
        assert (await get(generation, ada))["status"] == 429
    await publish_a_refusal(generation)
    assert (await get(generation, ada))["status"] == 200


async def test_when_the_server_restarts_a_stream_ends_well_so_that_the_browser_comes_again(
    generation, ada, monkeypatch
):
    request = HttpCommunicator(ROUTER, "GET", f"/generations/{generation.pk}/events")
    request.scope["user"] = ada
    await request.send_input({"type": "http.request", "body": b"", "more_body": False})
    assert (await request.receive_output(10))["status"] == 200
    assert (await request.receive_output(10))["body"] == b"retry: 1000\n\n"
    monkeypatch.setattr(drain, "_has_begun", True)
    assert not drain.is_waited_for(request.future)
    request.future.cancel()
    last = await request.receive_output(10)
    while last["more_body"]:
        assert b"event: f" not in last["body"]  # neither finished nor failed
        last = await request.receive_output(10)
    await request.wait(10)


async def test_anothers_generation_is_not_found(generation, grace):
    assert (await get(generation, grace))["status"] == 404


async def test_who_is_not_signed_in_finds_nothing(generation):
    assert (await get(generation, AnonymousUser()))["status"] == 404


async def test_no_other_origin_may_read_it(generation, ada):
    await publish_a_refusal(generation)
    reply = await get(generation, ada, (b"origin", b"https://elsewhere.example"))
    assert not [name for name, _ in reply["headers"] if name.startswith(b"access-control")]


async def test_it_can_only_be_read(generation, ada):
    assert (await get(generation, ada, method="POST"))["status"] == 405


async def test_it_speaks_the_browsers_language(generation, ada):
    await publish_a_refusal(generation)
    reply = await get(generation, ada, (b"accept-language", b"de-AT,de;q=0.9"))
    assert "Mehr von dieser Antwort kommt nicht" in reply["body"].decode()
