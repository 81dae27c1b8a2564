from __future__ import annotations

import json
import math
from typing import Any

import pytest

from inference.messages import GenerationRequest, SamplingParams
from inference.wire.api import Defaults
from inference.wire.errors import RequestError
from inference.wire.llamacpp import COMPLETION
from inference.wire.openai import CHAT, COMPLETIONS
from tests.wire.examples import APIS, parse, source

every_api = pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
NAN, INF = math.nan, math.inf


@every_api
def test_a_body_without_them_gets_the_defaults(api):
    request = parse(api)
    assert request.sampling == SamplingParams()
    assert (request.max_tokens, request.stop, request.stream) == (-1, (), False)


@every_api
def test_the_operators_defaults_hold_where_the_body_is_silent_or_null(api):
    defaults = Defaults(temperature=0.3, seed=11, max_tokens=64, model="m")
    for body in (source(api), source(api) | {"temperature": None, "seed": None, "max_tokens": None}):
        request = api.parse(body, defaults)
        assert (request.sampling.temperature, request.sampling.seed, request.max_tokens) == (0.3, 11, 64)
    given = api.parse(source(api) | {"temperature": 1, "seed": 5, "max_tokens": 3}, defaults)
    assert (given.sampling.temperature, given.sampling.seed, given.max_tokens) == (1.0, 5, 3)
    assert api.parse(source(api) | {"n_predict": -1}, defaults).max_tokens == 64


@every_api
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", 0),
        ("temperature", 2.5),
        ("top_k", 0),
        ("top_k", -1),
        ("top_k", 100000),
        ("top_p", 0),
        ("top_p", 1),
        ("min_p", 0.1),
        ("typical_p", 0.5),
        ("repeat_penalty", 1.1),
        ("repeat_last_n", -1),
        ("repeat_last_n", 0),
        ("presence_penalty", -2),
        ("frequency_penalty", 2),
        ("ignore_eos", True),
        ("seed", 0),
        ("seed", 4294967294),
    ],
)
def test_a_good_value_is_taken(api, name, value):
    assert getattr(parse(api, **{name: value}).sampling, name) == value


@every_api
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 1e30),
        ("temperature", NAN),
        ("temperature", INF),
        ("temperature", "0.5"),
        ("temperature", True),
        ("temperature", [1]),
        ("temperature", 10**400),
        ("top_k", 1.5),
        ("top_k", -2),
        ("top_k", 2**31),
        ("top_k", False),
        ("top_p", 1.01),
        ("top_p", -0.01),
        ("min_p", 2),
        ("typical_p", "1"),
        ("repeat_penalty", 0),
        ("repeat_penalty", -1),
        ("repeat_last_n", -2),
        ("repeat_last_n", 2**31 - 1),
        ("presence_penalty", 1e9),
        ("frequency_penalty", None.__class__.__name__),
        ("seed", -2),
        ("seed", 2**32),
        ("seed", 1.0),
        ("seed", "42"),
        ("seed", True),
        ("max_tokens", -2),
        ("max_tokens", 1.0),
        ("max_tokens", True),
        ("max_completion_tokens", "8"),
        ("n_predict", []),
        ("ignore_eos", 1),
        ("ignore_eos", "true"),
        ("stream", 1),
        ("cache_prompt", "no"),
        ("stream", "yes"),
        ("model", 3),
        ("model", ["m"]),
        ("stop", 3),
        ("stop", ""),
        ("stop", ["a", ""]),
        ("stop", [1]),
        ("stop", ["x"] * 17),
        ("stop", {"a": 1}),
        ("logit_bias", 1),
        ("logit_bias", "x"),
        ("logit_bias", [[1]]),
        ("logit_bias", [1, 2]),
        ("logit_bias", [[1, 2, 3]]),
        ("logit_bias", [[-1, 0.5]]),
        ("logit_bias", [[1.5, 0.5]]),
        ("logit_bias", [[True, 0.5]]),
        ("logit_bias", [[1, True]]),
        ("logit_bias", [[1, "5"]]),
        ("logit_bias", [[1, NAN]]),
        ("logit_bias", {"1": None}),
        ("logit_bias", {"1": INF}),
        ("logit_bias", {"99999999999": 1}),
    ],
)
def test_a_bad_value_is_refused_by_name(api, name, value):
    with pytest.raises(RequestError) as e:
        parse(api, **{name: value})
    assert (e.value.status, e.value.type, e.value.param) == (400, "invalid_request_error", name)
    assert f'"{name}' in e.value.message


@every_api
def test_unknown_fields_and_those_without_effect_are_let_through(api):
    fields = {"user": "u", "metadata": {"a": 1}, "id_slot": 3, "service_tier": "auto"}
    fields |= {"store": True, "parallel_tool_calls": True, "made_up": [1, {}], "timings_per_token": True}
    assert parse(api, **fields) == parse(api)


@every_api
def test_a_prompt_may_be_kept_unless_the_request_says_no(api):
    assert parse(api).cache_prompt is parse(api, cache_prompt=True).cache_prompt is True
    assert parse(api, cache_prompt=False).cache_prompt is False


@every_api
def test_any_model_name_is_accepted(api):
    for name in ("gpt-4o", "", None):
        assert parse(api, model=name) == parse(api)


@every_api
def test_a_temperature_too_small_to_divide_by_is_greedy(api):
    assert parse(api, temperature=1e-40).sampling.temperature == 0.0


@every_api
@pytest.mark.parametrize(
    ("given", "used"), [(-1, -1), (2**32 - 1, -1), (2**32 - 2, 2**32 - 2), (0, 0), (123, 123)]
)
def test_llama_cpps_mark_for_a_random_seed_is_random(api, given, used):
    assert parse(api, seed=given).sampling.seed == used


@every_api
def test_the_three_names_of_max_tokens(api):
    assert parse(api, max_tokens=3).max_tokens == 3
    assert parse(api, max_completion_tokens=4).max_tokens == 4
    assert parse(api, n_predict=5).max_tokens == 5
    assert parse(api, max_tokens=3, max_completion_tokens=4).max_tokens == 4
    assert parse(api, max_tokens=3, max_completion_tokens=4, n_predict=5).max_tokens == 5
    assert parse(api, max_tokens=10**30).max_tokens == 2**31 - 1


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "n_predict"])
def test_zero_tokens_evaluate_the_prompt_at_llama_servers_endpoint_and_are_refused_at_openais(name):
    for api in (CHAT, COMPLETIONS):
        with pytest.raises(RequestError, match="at least 1") as e:
            parse(api, **{name: 0})
        assert e.value.param == name
    assert parse(COMPLETION, **{name: 0}).max_tokens == 0


@every_api
def test_stop_is_one_string_or_up_to_sixteen(api):
    assert parse(api, stop="\n").stop == ("\n",)
    assert parse(api, stop=[]).stop == ()
    assert parse(api, stop=["a"] * 16).stop == ("a",) * 16


@every_api
def test_logit_bias_has_two_shapes(api):
    as_object = parse(api, logit_bias={"15": -1.5, "16": False, " the": 2, "-3": 1}).sampling.logit_bias
    assert as_object == ((15, -1.5), (16, -INF), (" the", 2.0), ("-3", 1.0))
    as_pairs = parse(api, logit_bias=[[15, -1.5], ["15", 1], [" the", False]]).sampling.logit_bias
    assert as_pairs == ((15, -1.5), ("15", 1.0), (" the", -INF))
    assert parse(api, logit_bias={}).sampling.logit_bias == ()


@every_api
def test_a_request_survives_its_way_through_a_job(api):
    request = parse(api, logit_bias=[[1, False], ["a", 2]], stop=["x"], seed=3, max_tokens=9, stream=True)
    assert GenerationRequest.from_dict(json.loads(json.dumps(request.to_dict()))) == request


@every_api
@pytest.mark.parametrize("body", [None, [], "text", 3, True, [{}]])
def test_a_body_must_be_an_object(api, body):
    with pytest.raises(RequestError, match="must be a JSON object") as e:
        api.parse(body, Defaults())
    assert e.value.status == 400


@every_api
def test_half_a_surrogate_pair_is_refused_wherever_it_is(api):
    for fields in (
        {"stop": "\ud800"},
        {"prompt": "a\udfff"},
        {"messages": [{"role": "user", "content": "\ud83d"}]},
    ):
        with pytest.raises(RequestError, match="surrogate"):
            parse(api, **fields)


@every_api
def test_a_body_nested_too_deeply_is_refused(api):
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RequestError, match="nested too deeply"):
        parse(api, extra=deep)
    while deep:  # taken apart by hand, as freeing it at once would recurse as well
        deep = deep.pop()


@pytest.mark.parametrize("api", APIS[:2], ids=lambda api: api.name)
@pytest.mark.parametrize("value", [3, [], {"include_usage": 1}, {"include_usage": "yes"}])
def test_stream_options_are_checked(api, value):
    with pytest.raises(RequestError, match="stream_options") as e:
        parse(api, stream_options=value)
    assert e.value.param == "stream_options"


@every_api
def test_what_a_context_shift_keeps_and_discards_is_the_requests_or_the_servers(api):
    defaults = Defaults(keep=5)
    request = api.parse(source(api), defaults)
    assert (request.n_keep, request.n_discard) == (5, 0)
    request = api.parse(source(api) | {"n_keep": -1, "n_discard": 7}, defaults)
    assert (request.n_keep, request.n_discard) == (-1, 7)
    for bad in ({"n_keep": -2}, {"n_discard": -1}, {"n_keep": "all"}):
        with pytest.raises(RequestError) as refused:
            api.parse(source(api) | bad, defaults)
        assert refused.value.status == 400
