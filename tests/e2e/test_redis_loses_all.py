"""Redis loses its data: what nobody had begun is asked for again by those who wait for it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from inference.broker.keys import JOBS, snapshot

from .api import KNIGHT, Reply, body, until
from .stack import Stack
from .test_chat import answer, ask, state_line, wait_for_the_end

pytestmark = pytest.mark.model


@pytest.fixture
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack of its own."""
    stack = Stack(tmp_path_factory.mktemp("forgetful"), **{"ctx-size": 512, "temp": 0, "n-predict": 12})
    stack.flags.append("--exact")
    stack.start()
    yield stack
    stack.stop()


def test_clients_and_pages_that_waited_in_the_queue_are_answered(
    forgetful: Stack, sign_in: Callable[..., Page]
) -> None:
    page = sign_in("ada", forgetful)
    request = body("/completion", KNIGHT, 20)
    whole = Reply(forgetful.port, "/completion", request).read()
    pid = forgetful.child("worker")
    with forgetful.redis() as client:
        (key,) = client.scan_iter(snapshot("*"))
        picture: Any = client.get(key)
        os.kill(pid, signal.SIGSTOP)
        client.set(key, picture, ex=600)  # it seems to live, and takes nothing
        replies: list[Reply] = []
        asking = threading.Thread(
            target=lambda: replies.append(Reply(forgetful.port, "/completion", request).read())
        )
        asking.start()
        ask(page, "Tell me of boats")
        until(lambda: client.xlen(JOBS) == 2)
        client.flushall()
    os.kill(pid, signal.SIGCONT)
    asking.join()
    assert (replies[0].status, replies[0].text) == (200, whole.text)
    wait_for_the_end(page)
    expect(answer(page)).not_to_be_empty()
    expect(state_line(page)).to_contain_text("Cut off")
