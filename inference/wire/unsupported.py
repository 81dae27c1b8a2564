"""Fields that would change the text and that are not to be had here: refused, never silently ignored."""

from __future__ import annotations

from typing import Any, NamedTuple

from inference.wire.errors import invalid
from inference.wire.fields import Body


class Only(NamedTuple):
    """Equal to one of these, and of its type: true is not 1."""

    values: tuple[Any, ...]

    def allows(self, value: Any) -> bool:
        return any(type(value) is type(one) and value == one for one in self.values)

    @property
    def schema(self) -> dict[str, Any]:
        return {"enum": [*self.values, None]}


class AtMost(NamedTuple):
    """A number up to this, or below it."""

    most: float
    is_excluded: bool = False

    def allows(self, value: Any) -> bool:
        return type(value) in (int, float) and (value < self.most if self.is_excluded else value <= self.most)

    @property
    def schema(self) -> dict[str, Any]:
        return {"type": ["number", "null"], "exclusiveMaximum" if self.is_excluded else "maximum": self.most}


def _exactly(*values: Any) -> Only:
    return Only(values)


_EMPTY = _exactly("", [], {})

# What a field may hold, and the best of it in words; null always may.
NEUTRAL: dict[str, tuple[Only | AtMost, str]] = {
    "logprobs": (_exactly(False, 0), "false"),
    "top_logprobs": (_exactly(0), "0"),
    "n_probs": (_exactly(0), "0"),
    "echo": (_exactly(False), "false"),
    "suffix": (_EMPTY, "an empty string"),
    "response_format": (_exactly({"type": "text"}), '{"type": "text"}'),
    "grammar": (_EMPTY, "an empty string"),
    "json_schema": (_exactly(), "null"),
    "modalities": (_exactly(["text"]), '["text"]'),
    "audio": (_exactly(), "null"),
    "web_search_options": (_exactly(), "null"),
    "images": (_EMPTY, "an empty list"),
    "image_data": (_EMPTY, "an empty list"),
    "lora": (_EMPTY, "an empty list"),
    "chat_template": (_EMPTY, "null"),
    "chat_template_kwargs": (_EMPTY, "an empty object"),
    "add_generation_prompt": (_exactly(True), "true"),
    "continue_final_message": (_exactly(False), "false"),
    "mirostat": (_exactly(0, 0.0), "0"),
    "dynatemp_range": (_exactly(0, 0.0), "0"),
    "xtc_probability": (_exactly(0, 0.0), "0"),
    "dry_multiplier": (_exactly(0, 0.0), "0"),
    "top_n_sigma": (AtMost(0), "-1"),
    "adaptive_target": (AtMost(0, is_excluded=True), "-1"),
    "min_keep": (_exactly(0), "0"),
    "n_indent": (_exactly(0), "0"),
    "t_max_predict_ms": (AtMost(0), "0"),
}

# llama-server's chain without the samplers that the table above keeps neutral.
CHAIN = ["penalties", "top_k", "typ_p", "top_p", "min_p", "temperature"]
ALWAYS_NEUTRAL = ("dry", "top_n_sigma", "xtc", "adaptive_p")
_CHAIN_LETTERS = "ekypmt"
_NEUTRAL_LETTERS = "dsxa"


def refuse_unsupported(body: Body) -> None:
    """Raise RequestError for the first field that asks for what cannot be given."""
    for name, (neutral, best) in NEUTRAL.items():
        value = body.get(name)
        if value is not None and not neutral.allows(value):
            raise invalid(name, f'"{name}" is not supported here: leave it out or set it to {best}.')
    _refuse_tools(body)
    _refuse_samplers(body)


def _refuse_tools(body: Body) -> None:
    for tools, choice in (("tools", "tool_choice"), ("functions", "function_call")):
        if body.get(tools) not in (None, []) and body.get(choice) != "none":
            raise invalid(
                tools, f'"{tools}" are not supported here: leave them out or set "{choice}" to "none".'
            )
        if body.get(choice) not in (None, "none", "auto"):
            raise invalid(choice, f'"{choice}" is not supported here: leave it out or set it to "none".')


def _refuse_samplers(body: Body) -> None:
    value = body.get("samplers")
    if isinstance(value, list):
        usual = [name for name in value if name not in ALWAYS_NEUTRAL] == CHAIN
    elif isinstance(value, str):
        usual = "".join(letter for letter in value if letter not in _NEUTRAL_LETTERS) == _CHAIN_LETTERS
    else:
        usual = value is None
    if not usual:
        raise invalid("samplers", f'"samplers" other than {", ".join(CHAIN)} are not supported here.')
