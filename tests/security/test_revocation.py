"""A key that is shut out while its stream runs: it ends and is cancelled, and nobody else's is touched."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import OperationalError

from inference import revocation
from inference.messages import Job, Token
from inference.models import ApiKey, UserLimits
from tests.api.play import Client, Worker, working
from tests.broker.play import END

from .play import BEGUN, signed_in, the_bell_can_be_heard
from .test_keys import ENDS, revoke

pytestmark = pytest.mark.usefixtures("soon")

WITH_N = {"prompt": "x", "stream": True, "n": 2}
STREAM = {"prompt": "x", "stream": True}


async def new_key(owner: User | None = None) -> tuple[ApiKey, dict[str, str]]:
    row, plain = await sync_to_async(ApiKey.objects.create_key)("laptop", owner)
    return row, {"Authorization": f"Bearer {plain}"}


async def begun(worker: Worker, path: str, key: dict[str, str]) -> tuple[Client, Job]:
    """A stream of this key's that has its first text."""
    client = Client("POST", path, STREAM, **key)
    job = await worker.takes()
    await worker.says(job, *BEGUN)
    await client.hears("once")
    return client, job


@pytest.mark.parametrize("end", ENDS)
async def test_a_stream_ends_with_its_key_and_its_generation_is_cancelled(end, ada):
    row, key = await new_key(ada)
    async with working() as worker:
        client, job = await begun(worker, "/v1/completions", key)
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
        stays, job = await begun(worker, "/completion", other)
        goes, _ = await begun(worker, "/completion", key)
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
        client, job = await begun(worker, "/completion", key)
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
        client, job = await begun(worker, "/completion", key)
        await sync_to_async(UserLimits.objects.create)(user=ada, max_concurrent=1)
        await sync_to_async(ApiKey.objects.filter(pk=row.pk).update)(max_output=1, max_concurrent=1)
        await worker.says(job, END)
        await client.ends()
    assert client.status == 200


async def test_a_revoked_key_is_heard_at_once(ada, monkeypatch):
    monkeypatch.setattr(revocation, "LOOK_EVERY_S", 3600)
    row, key = await new_key(ada)
    async with working() as worker:
        client, _ = await begun(worker, "/v1/completions", key)
        await the_bell_can_be_heard()
        browser = await sync_to_async(signed_in)(ada)
        await sync_to_async(browser.post)(f"/account/keys/{row.pk}/revoke/")
        await client.ends()
    assert "may not be used any more" in client.chunks[-1]["error"]["message"]


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
