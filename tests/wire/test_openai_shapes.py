from __future__ import annotations

import pytest

from inference.wire import sse
from inference.wire.openai import CHAT, COMPLETIONS
from tests.wire.examples import MODEL, TIMINGS, encoder, generation, objects, stream

USAGE = {
    "prompt_tokens": 5,
    "completion_tokens": 2,
    "total_tokens": 7,
    "prompt_tokens_details": {"cached_tokens": 0},
}
EVENTS = generation("Hi", " you")


def head(prefix, object):
    return {"id": f"{prefix}-abc", "object": object, "created": 1700000000, "model": MODEL}


def chat_chunk(delta, reason=None):
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    return head("chatcmpl", "chat.completion.chunk") | {"choices": [choice]}


def text_chunk(text, reason=None):
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}
    return head("cmpl", "text_completion") | {"choices": [choice]}


def test_a_chat_streams_its_role_then_its_text_then_its_end():
    chunks = [
        chat_chunk({"role": "assistant", "content": ""}),
        chat_chunk({"content": "Hi"}),
        chat_chunk({"content": " you"}),
        chat_chunk({}, "stop") | {"timings": TIMINGS.to_dict()},
    ]
    assert stream(CHAT, EVENTS) == b"".join(map(sse.data, chunks)) + sse.DONE


def test_a_completion_streams_its_text_then_its_end():
    chunks = [
        text_chunk("Hi"),
        text_chunk(" you"),
        text_chunk("", "stop") | {"timings": TIMINGS.to_dict()},
    ]
    assert stream(COMPLETIONS, EVENTS) == b"".join(map(sse.data, chunks)) + sse.DONE


def test_a_chat_without_text_still_has_its_role_and_end():
    raw = stream(CHAT, generation())
    chunks = [chat_chunk({"role": "assistant", "content": ""}), chat_chunk({}, "stop")]
    assert objects(raw) == [chunks[0], chunks[1] | {"timings": TIMINGS.to_dict()}]
    assert raw.endswith(sse.DONE)


@pytest.mark.parametrize("api", [CHAT, COMPLETIONS], ids=lambda api: api.name)
def test_text_held_back_is_a_chunk_of_its_own_before_the_end(api):
    chunks = objects(stream(api, generation("Hi", "", text=" you")))
    plain = objects(stream(api, EVENTS))
    assert chunks == plain


@pytest.mark.parametrize("api", [CHAT, COMPLETIONS], ids=lambda api: api.name)
def test_usage_is_one_more_chunk_where_it_is_asked_for(api):
    *chunks, usage = objects(stream(api, EVENTS, stream_options={"include_usage": True}))
    assert chunks == objects(stream(api, EVENTS))
    assert (usage["choices"], usage["usage"]) == ([], USAGE)
    assert {k: usage[k] for k in ("id", "object", "created", "model")} == {
        k: chunks[0][k] for k in ("id", "object", "created", "model")
    }


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, {"include_usage": None}])
def test_usage_is_left_out_where_it_is_not_asked_for(options):
    assert not any("usage" in chunk for chunk in objects(stream(CHAT, EVENTS, stream_options=options)))


def test_a_chats_result():
    message = {"role": "assistant", "content": "Hi you"}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    assert encoder(CHAT).result(EVENTS) == head("chatcmpl", "chat.completion") | {
        "choices": [choice],
        "usage": USAGE,
        "timings": TIMINGS.to_dict(),
    }


def test_a_completions_result():
    assert encoder(COMPLETIONS).result(EVENTS) == text_chunk("Hi you", "stop") | {
        "usage": USAGE,
        "timings": TIMINGS.to_dict(),
    }
