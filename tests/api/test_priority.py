"""A request's priority, and the ceiling of whoever sends it."""

from __future__ import annotations

import asyncio
import json
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from inference.broker.connect import async_client
from inference.broker.keys import JOBS, RECORDS
from inference.models import UserLimits
from tests.broker.play import END, show

from .play import Client, create_key, fetch, working

BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/completions": {"prompt": "hi"},
    "/completion": {"prompt": "hi"},
}


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def queued_with(said: Any = None, path: str = "/completion", **headers: str) -> int:
    """The priority of the job that such a request becomes."""
    async with working() as worker:
        client = Client("POST", path, BODIES[path] | {"priority": said}, **headers)
        job = await worker.takes()
        await worker.says(job, END)
        await client.ends()
    found: int = job.body["priority"]
    return found


@pytest.mark.parametrize("path", BODIES)
async def test_above_the_ceiling_of_its_key_a_request_is_refused_and_nothing_is_queued(path):
    key = await asyncio.to_thread(create_key, "laptop")
    await show()
    client = await fetch("POST", path, BODIES[path] | {"priority": "high"}, **bearer(key))
    error = client.json["error"]
    assert (client.status, error["type"]) == (403, "permission_error")
    assert error["message"] == 'The priority "high" is above the ceiling of this key, which is "normal".'
    assert ("param" not in error) == (path == "/completion")
    assert not await async_client().exists(JOBS, RECORDS)


@pytest.mark.parametrize(("ceiling", "said", "meant"), [(-1, "high", -1), (-5, -5, -5), (0, "low", 1)])
async def test_up_to_its_ceiling_a_key_may_ask_for_what_it_likes(ceiling, said, meant):
    key = await asyncio.to_thread(create_key, "laptop", max_priority=ceiling)
    assert await queued_with(said, **bearer(key)) == meant


@pytest.mark.parametrize(("ceiling", "meant"), [(-1, 0), (None, 0), (1, 1), (50, 50)])
async def test_who_does_not_say_is_normal_or_as_low_as_the_ceiling(ceiling, meant):
    key = await asyncio.to_thread(create_key, "laptop", max_priority=ceiling)
    assert await queued_with(None, **bearer(key)) == meant


@pytest.mark.parametrize(("own", "allowed"), [(None, True), (0, False)])
async def test_a_key_has_its_owners_ceiling_unless_it_has_one_of_its_own(own, allowed):
    owner = await User.objects.acreate(username="ada")
    await UserLimits.objects.acreate(user=owner, max_priority=-1)
    key = await asyncio.to_thread(create_key, "laptop", owner, max_priority=own)
    if allowed:
        assert await queued_with("high", **bearer(key)) == -1
    else:
        assert (
            await fetch("POST", "/completion", {"prompt": "a", "priority": -1}, **bearer(key))
        ).status == 403


async def test_the_generations_record_has_its_priority():
    await queued_with("low")
    entries: Any = await async_client().xrange(RECORDS)
    [(_, fields), *_] = entries
    assert json.loads(fields[b"r"])["data"]["priority"] == 1


async def test_on_loopback_without_keys_who_is_at_the_machine_has_no_ceiling():
    assert await queued_with(-100) == -100


async def test_elsewhere_a_request_without_a_key_is_normal_at_most(options):
    options(host="0.0.0.0", allow_anonymous=True)
    client = await fetch("POST", "/completion", {"prompt": "hi", "priority": "high"})
    assert client.status == 403
    assert "a request without a key" in client.json["error"]["message"]


async def test_the_key_of_the_command_line_is_everybodys_and_is_normal_at_most(options):
    options(api_keys=("secret",))
    client = await fetch("POST", "/completion", {"prompt": "hi", "priority": "high"}, **bearer("secret"))
    assert client.status == 403


def test_the_command_makes_a_key_with_a_ceiling():
    out = StringIO()
    call_command("create_api_key", "--name", "laptop", "--max-priority", "high", stdout=out)
    assert asyncio.run(queued_and_closed("high", out.getvalue().strip())) == -1


async def queued_and_closed(said: Any, key: str) -> int:
    from inference.broker import connect

    try:
        return await queued_with(said, **bearer(key))
    finally:
        await connect.close()


@pytest.mark.parametrize("said", ["urgent", "1000", "1.5", ""])
def test_the_command_refuses_a_ceiling_that_is_no_priority(said):
    with pytest.raises(CommandError, match="not high, normal, low or an integer"):
        call_command("create_api_key", "--name", "laptop", f"--max-priority={said}")
