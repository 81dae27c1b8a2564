"""How many values a body may list, counted before any of them is made."""

from __future__ import annotations

import json

import pytest

from inference.wire.fields import MOST_VALUES, has_too_many_values

COMMAS = "," * (2 * MOST_VALUES)


@pytest.mark.parametrize(
    "listed",
    [
        b"1," * MOST_VALUES,
        b'{"a": [' + b'"x",' * MOST_VALUES,
        b'{"a":1},' * MOST_VALUES,
        json.dumps([COMMAS]).encode() + b",{}" * MOST_VALUES,
    ],
)
def test_too_many_are_told(listed: bytes) -> None:
    assert has_too_many_values(listed)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"prompt": COMMAS}).encode(),
        json.dumps({"prompt": '"' + COMMAS + "\\"}).encode(),
        json.dumps({"prompt": [1] * MOST_VALUES}).encode(),
        b"",
        b'"' + b'\\"' * (1 << 22) + COMMAS.encode(),  # without an end: it is read once
        b'"' * (1 << 22) + b"\\",
    ],
)
def test_commas_in_a_text_are_none(body: bytes) -> None:
    assert not has_too_many_values(body)
