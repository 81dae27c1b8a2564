"""Whoever loses the connection, or whichever process dies, a reader gets the whole text in the end."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from .api import FOX, KNIGHT, Reply, body, wait_until_idle
from .stack import Stack
from .test_chat import STORY, answer, ask, state_line, wait_for_the_end, wait_for_words

pytestmark = pytest.mark.model


def test_a_client_that_comes_back_gets_the_rest_of_its_stream(stack: Stack) -> None:
    path = "/v1/chat/completions"
    request = body(path, KNIGHT, 120, stream_options={"include_usage": True})
    whole = Reply(stack.port, path, request).read()
    first = Reply(stack.port, path, request)
    for _ in range(10):
        first.wait_for("data:")
    stack.kill("web")
    first.read_until_it_breaks()
    stack.wait_until_healthy()
    rest = Reply(stack.port, path, request, headers={"Last-Event-ID": first.last_id}).read()
    assert first.text + rest.text == whole.text
    assert len(first.objects) + len(rest.objects) == len(whole.objects)


@pytest.mark.parametrize("path", ["/completion", "/v1/completions"])
def test_what_was_cancelled_when_its_client_left_goes_on_with_the_same_text(path: str, stack: Stack) -> None:
    prompt = KNIGHT if path == "/completion" else [KNIGHT, FOX]
    request = body(
        path, prompt, 60, temperature=0.9, repeat_penalty=1.2, stream_options={"include_usage": True}
    )
    whole = Reply(stack.port, path, request).read()
    with Reply(stack.port, path, request) as first:
        for _ in range(20):
            first.wait_for("data:")
    wait_until_idle(stack)
    rest = Reply(stack.port, path, request, headers={"Last-Event-ID": first.last_id}).read()
    assert ": resumed" in {line[:9] for line in rest.lines}
    said, again = texts(first.objects + rest.objects), texts(whole.objects)
    assert said == again
    assert len(first.objects) + len(rest.objects) == len(whole.objects)


def texts(chunks: list[dict[str, Any]]) -> dict[int, str]:
    """What each choice says."""
    said: dict[int, str] = {}
    for chunk in chunks:
        for choice in chunk.get("choices", [chunk]):
            text = choice["content"] if "content" in choice else choice["text"]
            said[choice["index"]] = said.get(choice["index"], "") + text
    return said


@pytest.mark.browser
@pytest.mark.parametrize("process", ["web", "redis"])
def test_an_answer_goes_on_in_the_open_page_when_a_process_was_killed(sign_in, stack: Stack, process):
    page = sign_in("grace")
    ask(page, STORY)
    before = wait_for_words(page, 10)
    page.evaluate("window.opened = 'once'")
    stack.kill(process)
    wait_for_the_end(page)
    text = answer(page).text_content() or ""
    assert text.startswith(before)
    assert len(text.split()) > 60
    expect(state_line(page)).not_to_have_text(re.compile("No more|Connection"))
    assert page.evaluate("window.opened") == "once"
    page.reload()
    expect(answer(page)).to_have_text(text)
    stack.wait_until_healthy()


def test_an_api_stream_goes_on_when_redis_was_killed(stack: Stack) -> None:
    request = body("/completion", KNIGHT, 120)
    whole = Reply(stack.port, "/completion", request).read()
    with Reply(stack.port, "/completion", request) as reply:
        for _ in range(5):
            reply.wait_for("data:")
        stack.kill("redis")
        assert reply.read().text == whole.text
    stack.wait_until_healthy()
