"""Reading one field of a request body strictly. A field that is absent or null takes its default; anything
that is not as it must be raises RequestError (400) with the field's name in the message."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from inference.wire.errors import invalid

INT32_MAX = 2**31 - 1
MOST_VALUES = 2**18  # of a request's body; each costs half a microsecond and some dozens of bytes
# Strings in JSON; one without an end goes on to the end, so that no text is read twice.
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
Body = dict[str, Any]


def has_too_many_values(raw: bytes) -> bool:
    """Whether a JSON text lists more than MOST_VALUES, before any is made. Texts may hold any commas."""
    return raw.count(b",") >= MOST_VALUES and _STRINGS.sub(b"", raw).count(b",") >= MOST_VALUES


def json_object(body: Any) -> Body:
    """The body itself, once it is known to be an object whose strings are all text."""
    if not isinstance(body, dict):
        raise invalid(None, "The request body must be a JSON object.")
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise invalid(
            None, "The request body holds half of a surrogate pair (\\ud800 to \\udfff), which is not text."
        ) from None
    except RecursionError:
        raise invalid(None, "The request body is nested too deeply.") from None
    return body


def is_int(value: Any) -> bool:
    return type(value) is int  # bool is a subclass of int, and true is not a number


def are_token_ids(values: Sequence[Any], *, or_texts: bool = False) -> bool:
    """Whether all are, asked of all at once: there can be hundreds of thousands."""
    types = set(map(type, values))
    if or_texts and str in types:
        types.remove(str)
        values = [value for value in values if type(value) is not str]
    return not types or (types == {int} and min(values) >= 0 and max(values) <= INT32_MAX)


def boolean(body: Body, name: str, default: bool = False) -> bool:
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise invalid(name, f'"{name}" must be true or false.')
    return value


def integer(body: Body, name: str, default: int, low: int, high: int = INT32_MAX) -> int:
    value = body.get(name)
    if value is None:
        return default
    if not is_int(value) or not low <= value <= high:
        raise invalid(name, f'"{name}" must be an integer from {low} to {high}.')
    return int(value)


def number(body: Body, name: str, default: float, low: float, high: float) -> float:
    value = body.get(name)
    if value is None:
        return default
    # NaN and the infinities fail the comparison.
    if type(value) not in (int, float) or not low <= value <= high:
        raise invalid(name, f'"{name}" must be a number from {low:g} to {high:g}.')
    return float(value)
