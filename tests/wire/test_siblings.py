"""Several prompts, and several choices of each."""

from __future__ import annotations

import json
from itertools import zip_longest

import pytest

from inference.messages import Failed, GenerationRequest, SamplingParams, sibling_ids
from inference.wire.choices import MAX_CHOICES
from inference.wire.errors import RequestError
from inference.wire.llamacpp import COMPLETION
from inference.wire.openai import CHAT, COMPLETIONS
from inference.wire.params import MAX_BIASES
from inference.wire.siblings import SiblingsEncoder
from tests.wire.examples import (
    APIS,
    DEFAULTS,
    MODEL,
    encoder,
    generation,
    objects,
    parse,
    source,
    stream,
)

every_api = pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
openai = pytest.mark.parametrize("api", [CHAT, COMPLETIONS], ids=lambda api: api.name)
completions = pytest.mark.parametrize("api", [COMPLETIONS, COMPLETION], ids=lambda api: api.name)
BROKE = Failed(500, "exceed_context_size_error", "It broke.", {"n_ctx": 64})


def siblings(api, **fields):
    body = source(api) | {"stream": True} | fields
    return SiblingsEncoder(api, api.parse(body, DEFAULTS), body, id="abc", model=MODEL, created=1700000000)


def interleaved(several):
    """(index, event) of generations that go on side by side."""
    return [(i, event) for row in zip_longest(*several) for i, event in enumerate(row) if event is not None]


def merged(e, several):
    raw = [e.event(index, event) for index, event in interleaved(several)]
    return b"".join([*raw, e.closing()])


def index_of(chunk):
    return chunk["choices"][0]["index"] if "choices" in chunk else chunk["index"]


def with_index(raw, index):
    return raw.replace(b'"index":0', b'"index":%d' % index)


@every_api
@pytest.mark.parametrize("name", ["n", "n_cmpl"])
@pytest.mark.parametrize("value", [0, -1, True, "2", 1.0, MAX_CHOICES + 1])
def test_n_is_a_number_of_choices(api, name, value):
    with pytest.raises(RequestError, match=f'"{name}" must be an integer from 1 to {MAX_CHOICES}') as e:
        parse(api, **{name: value})
    assert (e.value.status, e.value.param) == (400, name)


@every_api
def test_n_has_llama_servers_name_too_and_best_of_may_repeat_it(api):
    assert parse(api, n=3) == parse(api, n_cmpl=3) == parse(api, n=3, n_cmpl=3, best_of=3)
    assert parse(api, n=3).n_choices == 3
    for fields in ({"n": 2, "n_cmpl": 3}, {"n": 2, "best_of": 3}, {"n": 2, "best_of": 1}):
        with pytest.raises(RequestError) as e:
            parse(api, **fields)
        assert e.value.status == 400


@completions
def test_prompts_times_n_is_bounded(api):
    most = parse(api, prompt=["a"] * (MAX_CHOICES // 2), n=2)
    assert most.n_choices == MAX_CHOICES
    with pytest.raises(RequestError, match=f"at most {MAX_CHOICES} a request") as e:
        parse(api, prompt=["a"] * (MAX_CHOICES // 2 + 1), n=2)
    assert (e.value.status, e.value.param) == (400, "prompt")


@every_api
def test_biases_times_choices_are_bounded(api):
    most = {str(token): 1.0 for token in range(MAX_BIASES // 2)}
    assert parse(api, n=2, logit_bias=most).n_choices == 2
    assert parse(api, logit_bias=most | {"100000": 1.0}).n_choices == 1
    with pytest.raises(RequestError, match="too long for 2 choices") as e:
        parse(api, n=2, logit_bias=most | {"100000": 1.0})
    assert (e.value.status, e.value.param) == (400, "logit_bias")


def test_choices_are_those_of_the_first_prompt_first_and_k_has_seed_plus_k():
    request = GenerationRequest(prompts=("a", (1, 2)), n=2, sampling=SamplingParams(seed=2**32 - 2))
    assert [(c.prompt, c.sampling.seed) for c in request.choices()] == [
        ("a", 2**32 - 2),
        ("a", 0),  # 2**32 - 1 would mean a random one
        ((1, 2), 2**32 - 2),
        ((1, 2), 0),
    ]
    assert {(c.n, c.prompts, c.n_choices) for c in request.choices()} == {(1, (), 1)}
    random = GenerationRequest(prompt="a", n=2)
    assert [c.sampling.seed for c in random.choices()] == [-1, -1]
    assert GenerationRequest.from_dict(json.loads(json.dumps(request.to_dict()))) == request


def test_siblings_have_ids_of_their_own_and_the_first_has_the_jobs():
    job = "0123456789abcdef0123456789abcdef"
    ids = sibling_ids(job, MAX_CHOICES)
    assert len(set(ids)) == MAX_CHOICES
    assert ids[0] == job
    assert {(len(id), id[:-2]) for id in ids} == {(32, job[:-2])}


@every_api
def test_each_choices_lines_are_those_it_would_have_alone_with_its_index(api):
    several = [generation("Hi", "", " you"), generation("Ho"), generation(), generation("a", text="b")]
    raw = merged(siblings(api, n=4), several)
    lines = [line + b"\n\n" for line in raw.split(b"\n\n") if line]
    done = lines.pop() if api is not COMPLETION else b""
    assert done == (b"" if api is COMPLETION else b"data: [DONE]\n\n")
    for index, events in enumerate(several):
        its = b"".join([line for line in lines if index_of(objects(line)[0]) == index])
        assert its + done == with_index(stream(api, events), index)


@openai
def test_usage_is_told_once_and_counts_each_prompt_once(api):
    several = [generation("a"), generation("b", "c"), generation("d"), generation()]
    fields = {"n": 4} if api is CHAT else {"prompt": ["x", "y"], "n": 2}
    told = siblings(api, **fields, stream_options={"include_usage": True})
    chunks = objects(merged(told, several))
    assert [chunk for chunk in chunks if "usage" in chunk] == chunks[-1:]
    n_prompts = 1 if api is CHAT else 2
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"] == {
        "prompt_tokens": 5 * n_prompts,
        "completion_tokens": 4,
        "total_tokens": 5 * n_prompts + 4,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    assert siblings(api, **fields).result(several)["usage"] == chunks[-1]["usage"]


@every_api
def test_a_notice_names_the_choice(api):
    several = [generation("a", "b"), generation("a", "b", parked=True)]
    raw = merged(siblings(api, n=2), several)
    comments = [line for line in raw.split(b"\n") if line.startswith(b":")]
    assert comments == [b": preempted 1", b": resumed 1"]
    notices = (b": preempted 1\n\n", b": resumed 1\n\n")
    bare = raw.replace(notices[0], b"").replace(notices[1], b"")
    # Only the order in which the choices take turns has changed.
    plain = merged(siblings(api, n=2), [generation("a", "b")] * 2)
    assert sorted(bare.split(b"\n\n")) == sorted(plain.split(b"\n\n"))


@openai
def test_openais_result_has_all_choices(api):
    several = [generation("Hi"), generation("Ho", stop_type="limit")]
    result = siblings(api, n=2).result(several)
    alone = [encoder(api).result(events) for events in several]
    assert [c["index"] for c in result["choices"]] == [0, 1]
    assert [c["finish_reason"] for c in result["choices"]] == ["stop", "length"]
    for choice, single in zip(result["choices"], alone, strict=True):
        assert choice | {"index": 0} == single["choices"][0] | {"timings": single["timings"]}
    assert {k: result[k] for k in ("id", "object", "model")} == {
        k: alone[0][k] for k in ("id", "object", "model")
    }


def test_llama_servers_result_is_a_list_of_results():
    several = [generation("Hi"), generation("Ho")]
    result = siblings(COMPLETION, prompt=["x", [1, 2]]).result(several)
    assert [(r["index"], r["prompt"], r["content"]) for r in result] == [(0, "x", "Hi"), (1, [1, 2], "Ho")]
    assert result[0] == encoder(COMPLETION, prompt="x").result(several[0])


@every_api
def test_one_that_fails_is_told_with_its_index_and_the_others_close_the_stream(api):
    e = siblings(api, n=2)
    raw = merged(e, [[*generation("a")[:3], BROKE], generation("b", "c", "d")])
    (error,) = [chunk for chunk in objects(raw) if "error" in chunk]
    assert error == api.error(RequestError(500, BROKE.type, "It broke.", extra={"n_ctx": 64, "index": 0}))
    assert raw.endswith(b"data: [DONE]\n\n") == (api is not COMPLETION)


@every_api
def test_when_all_have_failed_nothing_closes_the_stream(api):
    raw = merged(siblings(api, n=2), [[BROKE], [BROKE]])
    assert [chunk["error"]["index"] for chunk in objects(raw)] == [0, 1]
    assert b"[DONE]" not in raw


@every_api
def test_the_result_of_siblings_of_which_one_failed_is_its_error(api):
    with pytest.raises(RequestError, match="It broke"):
        siblings(api, n=2).result([generation("a"), [*generation("b")[:-1], BROKE]])
