"""What the service tells of itself tells no one's text and no one's name."""

from __future__ import annotations

import uuid

import pytest
from asgiref.sync import sync_to_async

from inference.models import Chat
from tests.api.play import Client, fetch, working
from tests.broker.play import END, picture, told

PATHS = ("/slots", "/metrics", "/props", "/health", "/v1/models")
SECRET = "zeugma"


@pytest.mark.parametrize("path", PATHS)
async def test_neither_text_nor_name_is_told(path, options, ada):
    options(metrics=True)
    await sync_to_async(Chat.objects.create)(user=ada, title=SECRET)
    slot = {**picture()["slots"][0], "state": "decode", "generation": uuid.uuid4().hex, "owner": SECRET}
    waits = {
        "generation": uuid.uuid4().hex,
        "owner": SECRET,
        "priority": 0,
        "since": 0.0,
        "n_prompt_tokens": 1,
    }
    parked = {
        **waits,
        "held": False,
        "slot": 0,
        "cells": 1,
        "bytes": 1,
        "method": "swap",
        "cause": "pressure",
        "parks": 1,
    }
    async with working(slots=[slot], queue=[waits], parked=[parked]) as worker:
        client = Client("POST", "/completion", {"prompt": f"{SECRET}?", "stream": True})
        job = await worker.takes()
        await worker.says(job, *told(SECRET)[:-1])
        await client.hears(SECRET)
        answer = await fetch("GET", path)
        await worker.says(job, END)
        await client.ends()
    assert answer.status == 200
    assert SECRET not in answer.body.decode()
    for id in (job.id, slot["generation"], waits["generation"]):
        assert str(id) not in answer.body.decode()
