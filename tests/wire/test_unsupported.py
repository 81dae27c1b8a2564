from __future__ import annotations

import pytest

from inference.wire.errors import RequestError
from tests.wire.examples import APIS, parse

every_api = pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
TOOL = {"type": "function", "function": {"name": "f"}}


@every_api
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("best_of", 3),
        ("logprobs", True),
        ("logprobs", 5),
        ("top_logprobs", 2),
        ("n_probs", 1),
        ("echo", True),
        ("suffix", "end"),
        ("tools", [TOOL]),
        ("tools", {"a": 1}),
        ("tool_choice", "required"),
        ("tool_choice", {"type": "function"}),
        ("functions", [{"name": "f"}]),
        ("function_call", {"name": "f"}),
        ("response_format", {"type": "json_object"}),
        ("response_format", "text"),
        ("grammar", 'root ::= "a"'),
        ("json_schema", {}),
        ("mirostat", 1),
        ("images", ["x"]),
        ("image_data", [{"data": ""}]),
        ("modalities", ["text", "audio"]),
        ("lora", [{"id": 0, "scale": 1}]),
        ("dynatemp_range", 0.5),
        ("xtc_probability", 0.1),
        ("dry_multiplier", 0.8),
        ("top_n_sigma", 1.0),
        ("adaptive_target", 0.5),
        ("min_keep", 2),
        ("n_indent", 4),
        ("t_max_predict_ms", 100),
        ("chat_template_kwargs", {"enable_thinking": False}),
        ("add_generation_prompt", False),
        ("samplers", ["top_k"]),
        ("samplers", ["temperature", "top_k", "top_p", "min_p", "typ_p", "penalties"]),
        ("samplers", [["top_k"]]),
        ("samplers", "kt"),
        ("samplers", 3),
    ],
)
def test_what_would_change_the_text_is_refused_by_name(api, name, value):
    with pytest.raises(RequestError, match="not supported here") as e:
        parse(api, **{name: value})
    assert (e.value.status, e.value.param) == (400, name)
    assert f'"{name}"' in e.value.message


@every_api
@pytest.mark.parametrize(
    "fields",
    [
        {"n": 1, "best_of": 1, "n_cmpl": 1},
        {
            "n": None,
            "logprobs": None,
            "tools": None,
            "response_format": None,
            "samplers": None,
            "suffix": None,
        },
        {"logprobs": False, "top_logprobs": 0},
        {"logprobs": 0, "n_probs": 0},
        {"echo": False, "suffix": ""},
        {"tools": [], "tool_choice": "auto"},
        {"tools": [TOOL], "tool_choice": "none"},
        {"functions": [{"name": "f"}], "function_call": "none"},
        {"response_format": {"type": "text"}, "modalities": ["text"]},
        {"grammar": "", "json_schema": None, "image_data": [], "lora": [], "chat_template_kwargs": {}},
        {
            "mirostat": 0,
            "dynatemp_range": 0.0,
            "xtc_probability": 0,
            "dry_multiplier": 0.0,
            "top_n_sigma": -1.0,
        },
        {"mirostat_tau": 5.0, "mirostat_eta": 0.1, "dry_base": 1.75, "xtc_threshold": 0.1, "n_keep": 0},
        {"min_keep": 0, "n_indent": 0, "t_max_predict_ms": -1, "adaptive_target": -1},
        {
            "samplers": [
                "penalties",
                "dry",
                "top_n_sigma",
                "top_k",
                "typ_p",
                "top_p",
                "min_p",
                "xtc",
                "temperature",
            ]
        },
        {"samplers": "edskypmxt"},
    ],
)
def test_their_neutral_values_pass(api, fields):
    assert parse(api, **fields) == parse(api)
