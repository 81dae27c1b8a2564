"""The API while the database is away: keys that are in it can't be checked, and nothing else needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import OperationalError
from django.db.backends.utils import CursorWrapper

from tests.broker.play import told

from .play import Client, create_key, fetch, working
from .test_generate import PLAIN


@contextmanager
def database_away() -> Iterator[None]:
    """Every query fails."""

    def execute(*_: object, **__: object) -> None:
        raise OperationalError("it can't be reached")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CursorWrapper, "execute", execute)
        yield


async def test_a_key_of_the_database_gets_a_503_and_one_of_the_command_line_an_answer(options):
    options(api_keys=("flag",))
    key = await asyncio.to_thread(create_key, "laptop")
    async with working() as worker:
        with database_away():
            refused = await fetch("POST", "/v1/chat/completions", {}, Authorization=f"Bearer {key}")
            client = Client("POST", "/completion", PLAIN, Authorization="Bearer flag")
            await worker.says(await worker.takes(), *told("x"))
            await client.ends()
    assert refused.status == 503
    assert "database" in refused.json["error"]["message"]
    assert client.status == 200


async def test_a_stream_that_is_open_goes_on():
    key = await asyncio.to_thread(create_key, "laptop")
    async with working() as worker:
        client = Client("POST", "/completion", PLAIN, Authorization=f"Bearer {key}")
        job = await worker.takes()
        await worker.says(job, *told("a", "b")[:3])
        await client.hears('"a"')
        with database_away():
            await worker.says(job, *told("a", "b")[3:])
            await client.ends()
    assert [chunk["content"] for chunk in client.chunks] == ["a", "b", ""]
