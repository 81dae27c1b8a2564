"""What the bodies of requests may hold, from the bounds by which `wire` reads them."""

from __future__ import annotations

from typing import Any

from inference.messages import HIGHEST, LOWEST, PRIORITIES, RANDOM_SEED
from inference.wire import params, prompts, unsupported
from inference.wire.choices import MAX_CHOICES
from inference.wire.fields import INT32_MAX, MOST_VALUES
from inference.wire.llamacpp import MOST_TEXT

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": ["boolean", "null"]}
TOKEN: Schema = {"type": "integer", "minimum": 0, "maximum": INT32_MAX}
PROMPT: Schema = {
    "description": "A text, or a list of token ids and texts.",
    "anyOf": [TEXT, {"type": "array", "minItems": 1, "items": {"anyOf": [TOKEN, TEXT]}}],
}


def _integer(low: int, high: int) -> Schema:
    return {"type": ["integer", "null"], "minimum": low, "maximum": high}


def _strings(most: int, longest: int) -> Schema:
    one = {"type": "string", "minLength": 1, "maxLength": longest}
    return {"anyOf": [one, {"type": "array", "maxItems": most, "items": one}, {"type": "null"}]}


def _object(properties: dict[str, Schema], required: list[str], description: str = "") -> Schema:
    """Fields that are not named are ignored."""
    about = {"description": description} if description else {}
    return {"type": "object", **about, "properties": properties, "required": required}


BIAS: Schema = {
    "description": "false forbids the token.",
    "anyOf": [{"type": "number", "minimum": -1e9, "maximum": 1e9}, {"const": False}],
}
LOGIT_BIAS: Schema = {
    "description": "A token's id or text, and what is added to its logit.",
    "anyOf": [
        {"type": "object", "maxProperties": params.MAX_BIASES, "additionalProperties": BIAS},
        {
            "type": "array",
            "maxItems": params.MAX_BIASES,
            "items": {
                "type": "array",
                "prefixItems": [{"anyOf": [TOKEN, TEXT]}, BIAS],
                "minItems": 2,
                "maxItems": 2,
                "items": False,
            },
        },
        {"type": "null"},
    ],
}


def _max_tokens(low: int) -> Schema:
    return {
        "description": "-1: no bound but the context's. Of several names the last of max_tokens, "
        "max_completion_tokens and n_predict counts.",
        "anyOf": [{"type": "integer", "minimum": low}, {"const": -1}, {"type": "null"}],
    }


def _generation(low: int) -> dict[str, Schema]:
    """The fields that all generations share."""
    numbers = {
        name: {"type": ["number", "null"], "minimum": least, "maximum": most}
        for name, (least, most) in params.NUMBERS.items()
    }
    choices = _integer(1, MAX_CHOICES)
    return {
        "model": {"type": ["string", "null"], "description": "Any name: one model is served."},
        "stream": BOOLEAN,
        **dict.fromkeys(("max_tokens", "max_completion_tokens", "n_predict"), _max_tokens(low)),
        "n": choices,
        "best_of": {"enum": [1, None], "description": "With another n: as many as that."},
        **numbers,
        **{name: _integer(*bounds) for name, bounds in params.INTEGERS.items()},
        "seed": {**_integer(-1, RANDOM_SEED), "description": "-1: a random one."},
        "stop": _strings(params.MAX_STOP_STRINGS, params.MAX_STOP_LENGTH),
        "logit_bias": LOGIT_BIAS,
        "ignore_eos": BOOLEAN,
        "cache_prompt": {
            **BOOLEAN,
            "description": "false: the prompt is computed from its start, and not kept.",
        },
        "n_keep": {**_integer(-1, INT32_MAX), "description": "Of the prompt, at a context shift. -1: all."},
        "n_discard": {**_integer(0, INT32_MAX), "description": "At a context shift. 0: half."},
        "priority": {
            "description": "The lower number goes first.",
            "anyOf": [
                {"enum": [*PRIORITIES, None]},
                {"type": "integer", "minimum": HIGHEST, "maximum": LOWEST},
            ],
        },
        "samplers": {"enum": [unsupported.CHAIN, None], "description": "The order is fixed."},
        **{name: {"type": ["array", "null"], "maxItems": 0} for name in ("tools", "functions")},
        **{name: {"enum": ["none", "auto", None]} for name in ("tool_choice", "function_call")},
        **{name: neutral.schema for name, (neutral, _) in unsupported.NEUTRAL.items()},
    }


STREAM_OPTIONS: Schema = {
    "type": ["object", "null"],
    "properties": {"include_usage": BOOLEAN},
}
PART: Schema = _object({"type": {"const": "text"}, "text": TEXT}, ["type", "text"])
NESTED: Schema = {"type": "object", "description": f"Nested {prompts.MOST_NESTED} deep at most."}


def _message(roles: list[str], content: Schema, required: list[str]) -> Schema:
    optional = {"type": ["string", "null"]}
    return _object(
        {
            "role": {"enum": roles},
            "content": content,
            "name": optional,
            "tool_call_id": optional,
            "tool_calls": {"type": ["array", "null"], "items": NESTED},
        },
        ["role", *required],
    )


_CONTENT: Schema = {"anyOf": [TEXT, {"type": "array", "items": PART}]}
MESSAGE: Schema = {
    "anyOf": [
        _message([role for role in prompts.ROLES if role != "assistant"], _CONTENT, ["content"]),
        _message(["assistant"], {"anyOf": [*_CONTENT["anyOf"], {"type": "null"}]}, []),
    ]
}
MESSAGES: Schema = {
    "type": "array",
    "minItems": 1,
    "maxItems": prompts.MOST_MESSAGES,
    "items": {"$ref": "#/components/schemas/Message"},
}
PROMPTS: Schema = {
    "description": f"One prompt, or a list of them: prompts times n are {MAX_CHOICES} at most.",
    "anyOf": [*PROMPT["anyOf"], {"type": "array", "minItems": 1, "maxItems": MAX_CHOICES, "items": PROMPT}],
}

CHAT = _object({"messages": MESSAGES, "stream_options": STREAM_OPTIONS, **_generation(1)}, ["messages"])
COMPLETIONS = _object({"prompt": PROMPTS, "stream_options": STREAM_OPTIONS, **_generation(1)}, ["prompt"])
COMPLETION = _object({"prompt": PROMPTS, "return_tokens": BOOLEAN, **_generation(0)}, ["prompt"])
TOKENIZE = _object(
    {
        "content": {**TEXT, "maxLength": MOST_TEXT},
        "add_special": BOOLEAN,
        "parse_special": BOOLEAN,
        "with_pieces": BOOLEAN,
    },
    ["content"],
)
DETOKENIZE = _object({"tokens": {"type": "array", "maxItems": MOST_VALUES, "items": TOKEN}}, ["tokens"])
APPLY_TEMPLATE = _object({"messages": MESSAGES}, ["messages"])
