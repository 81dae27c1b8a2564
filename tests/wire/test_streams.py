"""What all encoders have in common."""

from __future__ import annotations

import json

import pytest

from inference.messages import Answer, Failed, Token
from inference.wire import sse
from inference.wire.errors import RequestError
from inference.wire.llamacpp import COMPLETION
from inference.wire.openai import CHAT, COMPLETIONS
from tests.wire.examples import (
    APIS,
    encoder,
    finished,
    generation,
    objects,
    result_text,
    shown,
    stream,
)

every_api = pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
GENERATIONS = {
    "plain": generation("Once", " upon", " a", " time"),
    "empty": generation(),
    "no visible text": generation("", ""),
    "held back": generation("a", "", "", stop_type="limit", text="</s"),
    "only held back": generation("", text="tail"),
    "awkward": generation(
        '"', "\\", "\n", "\r\n", "\0", "\x1f", "\x7f", "\u2028", "é", "日本", "🙂", "data: x\n\n"
    ),
    "a stop word": generation("a", "b", "", stop_type="word", stopping_word="END"),
    "cancelled": generation("a", stop_type="cancelled"),
    "many": generation(*[f"{i}\n" for i in range(300)]),
}
each_generation = pytest.mark.parametrize("events", GENERATIONS.values(), ids=GENERATIONS)


@every_api
@each_generation
@pytest.mark.parametrize("usage", [False, True])
def test_the_streams_text_is_the_results_text(api, events, usage):
    fields = {"stream_options": {"include_usage": usage}}
    chunks = objects(stream(api, events, **fields))
    result = encoder(api, **fields).result(events)
    assert shown(chunks) == result_text(result)
    json.dumps(result, allow_nan=False)


@every_api
@each_generation
def test_every_data_line_is_the_compact_json_of_its_object(api, events):
    for part in stream(api, events).split(b"\n\n"):
        if part not in (b"", b"data: [DONE]"):
            line = part.removeprefix(b"data: ").decode()
            assert json.dumps(json.loads(line), separators=(",", ":"), ensure_ascii=False) == line


@every_api
@each_generation
def test_a_park_adds_its_two_comments_and_changes_nothing_else(api, events):
    before, after = events[:3], events[3:]
    parked = [*before, *generation("x", parked=True)[3:5], *after]
    raw = stream(api, parked)
    assert (raw.count(sse.PREEMPTED), raw.count(sse.RESUMED)) == (1, 1)
    assert raw.replace(sse.PREEMPTED, b"").replace(sse.RESUMED, b"") == stream(api, events)


@every_api
def test_a_notice_before_the_first_token_comes_first(api):
    accepted, started, first, preempted, resumed, *rest = generation("a", "b", parked=True)
    raw = stream(api, [accepted, preempted, resumed, started, first, *rest])
    assert raw.startswith(sse.PREEMPTED + sse.RESUMED + b"data: ")


@every_api
def test_one_data_line_per_token_that_shows_text(api):
    e = encoder(api)
    for event in generation("first")[:3]:
        e.event(event)
    assert e.event(Token(1, "")) == b""
    assert len(objects(e.event(Token(2, "x")))) == 1
    assert shown(objects(e.event(Token(3, "y\nz")))) == "y\nz"


@every_api
def test_acceptance_and_answers_add_no_bytes(api):
    e = encoder(api)
    assert [e.event(event) for event in generation()[:2]] == [b"", b""]
    assert e.event(Answer({"tokens": []})) == b""


@every_api
def test_text_is_quoted_whatever_the_models_name_is(api):
    chunks = objects(stream(api, generation("\0", 'a"')))
    assert shown(chunks) == '\0a"'


@every_api
def test_a_failure_in_an_open_stream_is_a_data_line_with_the_error(api):
    failed = Failed(500, "server_error", "The worker broke.")
    raw = encoder(api).event(failed)
    assert raw == encoder(api).failure(RequestError(500, "server_error", "The worker broke."))
    assert raw.startswith(b"data: ")
    assert raw.endswith(b"\n\n")
    assert objects(raw) == [api.error(RequestError.from_failed(failed))]


@every_api
def test_the_result_of_a_failed_generation_is_its_error(api):
    failed = Failed(400, "exceed_context_size_error", "Too long.", {"n_prompt_tokens": 900, "n_ctx": 512})
    with pytest.raises(RequestError, match="Too long") as e:
        encoder(api).result([failed])
    assert (e.value.status, e.value.extra) == (400, {"n_prompt_tokens": 900, "n_ctx": 512})


@every_api
def test_a_generation_that_goes_on_has_no_result(api):
    for events in ([], generation("a")[:-1]):
        with pytest.raises(ValueError, match="end in Finished or Failed"):
            encoder(api).result(events)


@pytest.mark.parametrize(
    ("stop_type", "reason"), [("eos", "stop"), ("word", "stop"), ("limit", "length"), ("cancelled", "stop")]
)
@pytest.mark.parametrize("api", [CHAT, COMPLETIONS], ids=lambda api: api.name)
def test_finish_reasons_are_openais(api, stop_type, reason):
    events = generation("a", stop_type=stop_type)
    assert encoder(api).result(events)["choices"][0]["finish_reason"] == reason
    reasons = [c["finish_reason"] for chunk in objects(stream(api, events)) for c in chunk["choices"]]
    assert reasons[-1] == reason
    assert set(reasons[:-1]) == {None}


def test_stop_types_are_llama_servers():
    for stop_type in ("eos", "word", "limit", "cancelled"):
        assert encoder(COMPLETION).result([finished(stop_type=stop_type)])["stop_type"] == stop_type


def test_keepalives_say_what_is_waited_for():
    assert sse.keepalive("queued") == b": queued\n\n"
    assert sse.keepalive("prefill") == b": prefill\n\n"
    assert sse.keepalive("parked") == sse.PREEMPT_KEEPALIVE == b": preempt-keepalive\n\n"
    assert sse.keepalive("decode") == b": ping\n\n"
    assert (sse.PREEMPTED, sse.RESUMED) == (b": preempted\n\n", b": resumed\n\n")


def test_data_is_one_compact_utf8_line():
    assert sse.data({"a": ["é\n", None]}) == 'data: {"a":["é\\n",null]}\n\n'.encode()
    assert sse.DONE == b"data: [DONE]\n\n"
