"""What a worker keeps of its pictures."""

from __future__ import annotations

from typing import Any

import pytest

from inference.broker import series
from inference.broker.series import Change, Sample
from inference.worker import history
from inference.worker.history import History
from tests.broker.play import picture


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(history, "time", clock)
    return clock


@pytest.fixture
def written(monkeypatch) -> list[tuple[Sample, list[Change]]]:
    """What reaches Redis."""
    found: list[tuple[Sample, list[Change]]] = []

    async def write(worker: str, sample: Sample, changes: Any, **_: Any) -> None:
        found.append((sample, changes))

    monkeypatch.setattr(series, "write", write)
    return found


def shown(tokens: int = 0, firsts: int = 0, first_s: float = 0.0, **slot: Any) -> dict[str, Any]:
    made = picture(taken_at=7.0)
    made["slots"] = [made["slots"][0] | slot]
    made["counters"] = made["counters"] | {"tokens_predicted_total": tokens}
    counts = {"bounds": [1.0], "counts": [firsts, 0], "sum": first_s}
    made["histograms"] = made["histograms"] | {"first_token_seconds": counts}
    return made


async def test_many_pictures_make_one_sample_a_second_of_what_happened_since_the_last(clock, written):
    kept = History("w1")
    for tokens in range(10):
        await kept.add(shown(tokens))
    assert not written
    clock.now += 1
    await kept.add(shown(12, firsts=2, first_s=1.5))
    clock.now += 2
    await kept.add(shown(52, firsts=2, first_s=1.5))
    samples = [sample for sample, _ in written]
    assert [(s.seconds, s.tokens, s.firsts, s.first_s) for s in samples] == [(1, 12, 2, 1.5), (2, 40, 0, 0)]


async def test_each_change_in_a_slot_is_kept_once_also_those_between_two_samples(clock, written):
    kept = History("w1")
    mine: Any = {"owner": "ada", "generation": "a"}
    for state in ("prefill", "prefill", "decode", "parking", "parked"):
        await kept.add(shown(state=state, **mine))
    clock.now += 1
    await kept.add(shown(state="parked", held=True, **mine))
    clock.now += 1
    await kept.add(shown(state="parked", held=True, **mine))
    assert [[change[2] for change in changes] for _, changes in written] == [
        ["prefill", "decode", "parking", "parked", "held"],
        [],
    ]
    assert written[0][1][0] == [7.0, 0, "prefill", "ada", "a"]


async def test_while_redis_is_away_nothing_of_it_is_lost(clock, monkeypatch, written):
    kept, works = History("w1"), series.write

    async def fails(*_: Any, **__: Any) -> None:
        raise ConnectionError

    monkeypatch.setattr(series, "write", fails)
    clock.now += 1
    await kept.add(shown(5, state="decode"))
    monkeypatch.setattr(series, "write", works)
    clock.now += 1
    await kept.add(shown(9, state="idle"))
    [(sample, changes)] = written
    assert (sample.seconds, sample.tokens) == (2, 9)
    assert [change[2] for change in changes] == ["decode", "idle"]


async def test_only_the_first_that_is_written_begins_a_life(clock, monkeypatch):
    told: list[tuple[float, bool]] = []

    async def write(*_: Any, at: float, begins: bool) -> None:
        told.append((at, begins))
        if len(told) == 1:
            raise ConnectionError

    monkeypatch.setattr(series, "write", write)
    kept = History("w1")
    for at in (10.0, 11.0, 12.0):
        clock.now += 1
        await kept.add(shown() | {"at": at})
    assert told == [(10.0, True), (11.0, True), (12.0, False)]
