from __future__ import annotations

import json

import pytest

from inference.messages import Resumed
from inference.wire import sse
from inference.wire.llamacpp import COMPLETION
from tests.wire.examples import MODEL, TIMINGS, encoder, generation, objects, stream


def chunk(text, tokens, predicted, slot=2):
    return {
        "index": 0,
        "content": text,
        "tokens": tokens,
        "stop": False,
        "id_slot": slot,
        "tokens_predicted": predicted,
        "tokens_evaluated": 5,
    }


def test_a_stream_is_a_chunk_per_token_and_a_final_object_without_done():
    raw = stream(COMPLETION, generation("Hi", "\n"))
    *parts, final, end = raw.split(b"\n\n")
    assert [p + b"\n\n" for p in parts] == [sse.data(chunk("Hi", [100], 1)), sse.data(chunk("\n", [101], 2))]
    assert end == b""
    last = json.loads(final.removeprefix(b"data: "))
    assert list(last) == [
        "index",
        "content",
        "tokens",
        "id_slot",
        "stop",
        "model",
        "tokens_predicted",
        "tokens_evaluated",
        "generation_settings",
        "prompt",
        "has_new_line",
        "truncated",
        "stop_type",
        "stopping_word",
        "tokens_cached",
        "timings",
    ]
    assert (last["content"], last["tokens"], last["stop"], last["model"]) == ("", [], True, MODEL)
    assert (last["tokens_predicted"], last["tokens_evaluated"], last["tokens_cached"]) == (2, 5, 6)
    assert (last["has_new_line"], last["truncated"], last["id_slot"]) == (True, False, 2)
    assert (last["stop_type"], last["stopping_word"], last["prompt"]) == ("eos", "", "Hello")
    assert last["timings"] == TIMINGS.to_dict()


def test_a_token_that_shows_nothing_gives_its_id_to_the_next_chunk():
    chunks = objects(stream(COMPLETION, generation("a", "", "bc", "", text="d")))
    assert chunks[:-1] == [chunk("a", [100], 1), chunk("bc", [101, 102], 3), chunk("d", [103], 4)]


def test_chunks_name_the_slot_of_the_moment():
    events = generation("a", "b", parked=True)
    events[4] = Resumed(slot=0, waited=1.0)
    assert [c["id_slot"] for c in objects(stream(COMPLETION, events))] == [2, 0, 2]


def test_the_result_is_the_final_object_with_the_text():
    events = generation("a\n", "b", stop_type="word", stopping_word="END", truncated=True)
    result = encoder(COMPLETION).result(events)
    final = objects(stream(COMPLETION, events))[-1]
    assert result == final | {"content": "a\nb"}
    assert (result["stop_type"], result["stopping_word"], result["truncated"]) == ("word", "END", True)


def test_the_result_lists_its_tokens_where_they_are_asked_for():
    assert encoder(COMPLETION, return_tokens=True).result(generation("a", "", "b"))["tokens"] == [
        100,
        101,
        102,
    ]
    assert encoder(COMPLETION).result(generation("a"))["tokens"] == []


def test_generation_settings_tell_what_the_request_came_to():
    fields = {"temperature": 0.5, "n_predict": 9, "stop": "x", "logit_bias": [[3, False], ["a", 1.5]]}
    settings = encoder(COMPLETION, **fields).result(generation("a"))["generation_settings"]
    assert (settings["temperature"], settings["n_predict"], settings["stop"]) == (0.5, 9, ["x"])
    assert settings["logit_bias"] == [{"token": 3, "bias": False}, {"token": "a", "bias": 1.5}]
    assert settings["seed"] == 7  # the one in use, not the -1 of the request


@pytest.mark.parametrize(("given", "told"), [([1, "a"], [1, "a"]), (["a"], "a"), ([[1, 2]], [1, 2])])
def test_the_prompt_is_given_back_as_it_was_understood(given, told):
    assert encoder(COMPLETION, prompt=given).result(generation("a"))["prompt"] == told


def test_a_prompt_that_was_only_evaluated_occupies_its_own_tokens():
    result = encoder(COMPLETION, n_predict=0).result(generation(stop_type="limit"))
    assert (result["content"], result["tokens_predicted"], result["tokens_cached"]) == ("", 0, 5)
