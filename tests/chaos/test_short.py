"""A short chaos run: the worker and the web process are killed under thirty generations."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from . import plan
from .run import Run

pytestmark = pytest.mark.model

FAULTS = (
    plan.Fault("worker", after=4, delay=0.5, which=0, lasts=0.0),
    plan.Fault("web", after=10, delay=0.5, which=0, lasts=0.0),
    plan.Fault("worker", after=16, delay=0.5, which=0, lasts=0.0),
)


def test_whoever_is_killed_no_generation_is_lost(tmp_path: Path) -> None:
    made = replace(plan.make(3, 30, kinds=()), faults=FAULTS)
    tally = asyncio.run(Run(made, tmp_path, workers=1).run())
    assert not tally.bad, tally.report()
    assert tally.lost == 0, tally.report()
    assert tally.started >= 30
    assert tally.faults["worker"]
    assert tally.faults["web"]
    assert not any(tally.left_behind.values()), tally.report()
