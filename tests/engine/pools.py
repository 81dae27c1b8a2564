"""Small pools for the tests of the policy: sequences of which only numbers are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inference.engine.scheduler import Pool


@dataclass(eq=False)
class Seq:
    name: str
    cells: int = 0
    pending: int = 1
    decoding: bool = True
    parks: int = 0
    park_due: bool = False
    moving: bool = False
    held: bool = False
    priority: int = 0
    since: float = 0.0

    def __repr__(self) -> str:
        return self.name


def prompt(name: str, pending: int, cells: int = 0, **kwargs: Any) -> Seq:
    return Seq(name, cells, pending, decoding=False, **kwargs)


def pool(residents: list[Seq], parked: list[Seq] = [], queued: list[Seq] = [], **kwargs: Any) -> Pool[Seq]:  # noqa: B006
    numbers: dict[str, Any] = {
        "n_cells": 512,
        "n_slots": 4,
        "step_tokens": 512,
        "prefill_tokens": 40,
        "lone_chunk": 128,
        "now": 0.0,
        "rotate_after": 2.0,
        "can_park": True,
    }
    return Pool(residents=residents, parked=parked, queued=queued, **{**numbers, **kwargs})


def waiting(name: str, pending: int, **kwargs: Any) -> Seq:
    """A parked one: none of its cells is in the cache."""
    return Seq(name, 0, pending, decoding=False, **kwargs)
