"""The line: in the order of its key, whoever comes and goes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.engine.line import Line


@dataclass(eq=False)
class Waiting:
    id: int
    key: float


@given(st.lists(st.integers(0, 5)), st.lists(st.integers(0, 30), unique=True))
def test_it_is_in_the_order_of_its_key_and_equals_in_the_order_of_coming(
    keys: list[int], gone: list[int]
) -> None:
    line: Line[Waiting] = Line(lambda w: w.key)
    everyone = [Waiting(i, key) for i, key in enumerate(keys)]
    for one in everyone:
        line.add(one)
    for id in gone:
        if id < len(everyone):
            assert line.pop(id) is everyone[id]
    left = [one for one in everyone if one.id not in gone]
    assert list(line) == sorted(left, key=lambda w: w.key)
    assert len(line) == len(left)
    assert all((one in line) == (line.get(one.id) is one) == (one in left) for one in everyone)


def test_who_is_not_there_cannot_be_taken_out() -> None:
    with pytest.raises(KeyError):
        Line[Waiting](lambda w: w.key).pop(1)
