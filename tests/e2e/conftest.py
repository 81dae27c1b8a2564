from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.engine import tiny

from .api import KNIGHT, Reply, body, wait_until_idle
from .monitor_feed import Feed
from .stack import ROOT, Stack, launch_chromium, signed_in

expect.set_options(timeout=40_000)  # a busy machine is no failure


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Two slots, and a pool in which two long chats don't fit together. Greedy, so that runs are alike."""
    flags: dict[str, Any] = {"ctx-size": 512, "parallel": 2, "temp": 0, "n-predict": 260}
    stack = Stack(tmp_path_factory.mktemp("stack"), **flags)
    stack.start()
    yield stack
    stack.stop()


@pytest.fixture(scope="package")
def parking_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One slot, whose sequence is parked every 8 of its tokens.

    Siblings take turns in it. A neighbour in the batch could change a choice's logits in their last bits, and
    with them its text: here nobody has one.
    """
    flags = {"ctx-size": 512, "parallel": 1, "preempt-every": 8, "rotate-after": 0}
    stack = Stack(tmp_path_factory.mktemp("parking"), **flags)
    stack.start()
    yield stack
    stack.stop()


@pytest.fixture(scope="package")
def endless_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("endless")
    real = ROOT / "var/models/SmolLM2-135M-Instruct.Q4_1.gguf"
    tiny.write(folder / "words.gguf", real, chat_template=tiny.chat_template(real), only_words=True)
    flags: dict[str, Any] = {"ctx-size": 512, "parallel": 2, "temp": 0, "threads": 1}
    stack = Stack(folder, model=str(folder / "words.gguf"), **flags)
    stack.flags.append("--context-shift")
    stack.env["DJANGO_SETTINGS_MODULE"] = "tests.e2e.paced"
    stack.start()
    yield stack
    stack.stop()


@pytest.fixture
def endless(endless_stack: Stack) -> Iterator[Stack]:
    """A stack where nobody runs, and chats go on until they are stopped: their context is shifted.

    Its model says one random word after the other, at the pace of a real one but with little of its work.
    """
    wait_until_idle(endless_stack)
    yield endless_stack
    endless_stack.cancel_all()


@pytest.fixture
def filler(stack: Stack) -> Iterator[Reply]:
    """A stream that leaves no room for a long prompt, already writing."""
    with Reply(stack.port, "/completion", body("/completion", " ".join([KNIGHT] * 20), 250)) as reply:
        reply.wait_for("data:")
        yield reply


@pytest.fixture(scope="package")  # gone before other packages' tests: it keeps an event loop running
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = launch_chromium(playwright)
        yield browser
        browser.close()


@pytest.fixture
def sign_in(browser: Browser, stack: Stack) -> Iterator[Callable[..., Page]]:
    """`sign_in("ada")` -> a page of a browser of its own, `sign_in("ada", endless)` on another stack.

    ada is staff, grace is not.
    """
    with ExitStack() as opened:
        yield lambda name, at=stack, **context: opened.enter_context(signed_in(browser, at, name, **context))


@pytest.fixture
def feed(sign_in: Callable[..., Page]) -> Feed:
    """That of an open monitor."""
    feed = Feed(sign_in("ada"))
    feed.page.goto("/monitor/")
    return feed
