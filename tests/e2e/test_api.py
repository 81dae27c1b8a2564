"""The API on the real stack: what a client is told, and that a body never changes."""

from __future__ import annotations

import json

import pytest

from .api import ENDPOINTS, KNIGHT, Reply, body, slots, wait_until_idle, without_ids_and_times
from .stack import Stack

pytestmark = pytest.mark.model


@pytest.mark.parametrize("path", ENDPOINTS)
def test_the_body_with_parks_is_the_body_without(path: str, stack: Stack, parking_stack: Stack) -> None:
    wait_until_idle(stack)  # a neighbour could change the text
    request = body(path, KNIGHT, 48, stream_options={"include_usage": True})
    plain = Reply(stack.port, path, request).read()
    parked = Reply(parking_stack.port, path, request).read()
    assert plain.notices == []
    assert parked.notices == [": preempted", ": resumed"] * 5
    with_parks, without = (
        [without_ids_and_times(line) for line in reply.lines if not line.startswith(":")]
        for reply in (parked, plain)
    )
    assert with_parks == without


def test_sampled_text_survives_parks(stack: Stack, parking_stack: Stack) -> None:
    wait_until_idle(stack)
    request = body("/completion", KNIGHT, 40, temperature=0.9, top_p=0.95, repeat_penalty=1.1, seed=7)
    assert (
        Reply(parking_stack.port, "/completion", request).read().text
        == Reply(stack.port, "/completion", request).read().text
    )


@pytest.mark.parametrize("path", ENDPOINTS)
def test_a_request_that_does_not_stream_sees_nothing(path: str, parking_stack: Stack) -> None:
    reply = Reply(parking_stack.port, path, body(path, KNIGHT, 24, stream=False))
    assert reply.status == 200
    answer = reply.json()
    assert "preempt" not in json.dumps(answer)
    assert answer["timings"]["predicted_n"] == 24


def test_notices_can_be_switched_off_by_the_client(parking_stack: Stack) -> None:
    headers = {"X-Berth-Notices": "off"}
    reply = Reply(parking_stack.port, "/completion", body("/completion", KNIGHT, 24), headers=headers).read()
    assert all(line.startswith("data:") for line in reply.lines)
    assert reply.objects[-1]["tokens_predicted"] == 24


@pytest.mark.parametrize("path", ENDPOINTS)
def test_a_prompt_that_cannot_fit_is_refused_before_the_stream_opens(path: str, stack: Stack) -> None:
    reply = Reply(stack.port, path, body(path, "word " * 600, 8))
    assert reply.status == 400
    assert reply.headers["content-type"].startswith("application/json")
    error = reply.json()["error"]
    assert error["n_prompt_tokens"] > 512
    assert error["n_ctx"] == 512
    assert "context" in error["message"]


def test_of_the_next_turn_only_what_is_new_is_computed(stack: Stack) -> None:
    wait_until_idle(stack)
    said = [{"role": "user", "content": " ".join(["A fisherman of this village mends his nets."] * 20)}]
    usages = []
    for turn in range(3):
        request = {"messages": said, "max_tokens": 4, "ignore_eos": True, "cache_prompt": turn < 2}
        answer = Reply(stack.port, "/v1/chat/completions", request).json()
        said = [*said, answer["choices"][0]["message"], {"role": "user", "content": "And then?"}]
        usages.append((answer["usage"], answer["timings"]))
    cached = [usage["prompt_tokens_details"]["cached_tokens"] for usage, _ in usages]
    assert cached == [0, 128, 0]
    for usage, timings in usages:
        assert timings["cache_n"] + timings["prompt_n"] == usage["prompt_tokens"] > 200


def test_slots_never_show_text(stack: Stack, filler: Reply) -> None:
    shown = json.dumps(slots(stack))
    assert "knight" not in shown
    assert "Once" not in shown


@pytest.mark.parametrize(
    ("raw", "word"),
    [(b"{", "JSON"), (b"\xff\xfe", "UTF-8"), (b"[]", "object"), (b'{"prompt": 5}', "prompt")],
)
def test_a_malformed_body_is_a_400_that_says_what_is_wrong(stack: Stack, raw: bytes, word: str) -> None:
    reply = Reply(stack.port, "/completion", raw=raw)
    assert reply.status == 400
    assert word in reply.json()["error"]["message"]


def test_an_unknown_path_and_a_wrong_method_are_answered_in_json(stack: Stack) -> None:
    unknown = Reply(stack.port, "/v1/nothing", {})
    assert (unknown.status, "error" in unknown.json()) == (404, True)
    wrong = Reply(stack.port, "/v1/chat/completions")
    assert wrong.status == 405
    assert "POST" in wrong.headers["allow"]


def test_tokens_and_text_convert_both_ways(stack: Stack) -> None:
    tokens = Reply(stack.port, "/tokenize", {"content": KNIGHT}).json()["tokens"]
    assert Reply(stack.port, "/detokenize", {"tokens": tokens}).json() == {"content": KNIGHT}


def test_the_model_is_listed_and_described(stack: Stack) -> None:
    assert Reply(stack.port, "/v1/models").json()["data"][0]["object"] == "model"
    props = Reply(stack.port, "/props").json()
    assert props["total_slots"] == 2
    assert Reply(stack.port, "/metrics").status == 501
