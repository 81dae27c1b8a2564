"""The live picture of an engine, and the metrics made of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from inference.engine.engine import Engine
from inference.engine.llama import Context, Model
from inference.wire.metrics import metrics
from inference.worker.snapshot import Snapshots
from tests.engine.conftest import FOX, KNIGHT, Run


@pytest.fixture
def engine(model: Model) -> Iterator[Engine]:
    context = Context(model, n_ctx=256, n_seq_max=2, n_batch=256)
    yield Engine(context, n_cells=256, n_slots=2, n_ctx_seq=256)
    context.close()


def test_parks_and_their_times_get_into_the_metrics(engine: Engine) -> None:
    run = Run(engine)
    run.add(KNIGHT, 160)
    run.add(FOX, 160)
    run.finish()
    parks = engine.counters.n_preempt_total
    assert parks > 0
    picture = json.loads(json.dumps(Snapshots(engine).take()))
    assert picture["moves"] == {
        "parks": [["pressure", "swap", parks]],
        "resumes": [["pressure", "swap", parks]],
    }
    assert sum(picture["histograms"]["parked_seconds"]["counts"]) == parks
    text = metrics([picture]).decode()
    assert f'llamacpp:parks_total{{cause="pressure",method="swap"}} {float(parks)}' in text
    assert f"llamacpp:copy_out_seconds_count {float(parks)}" in text


def test_a_slot_tells_that_its_chat_is_being_parked_and_brought_back(engine: Engine) -> None:
    run = Run(engine)
    first, second = run.add(" ".join([KNIGHT] * 18), 40), run.add(FOX, 100)
    while not (first.decoding and second.decoding):
        run.step()
    snapshots, seen = Snapshots(engine), []
    assert engine.hold(first.id) == ""
    while not engine.parked:
        seen.append(snapshots.take()["slots"][first.slot])
        run.step()
    assert {slot["state"] for slot in seen} == {"parking"}
    assert all(slot["cells"] > 0 for slot in seen)
    assert snapshots.take()["slots"][first.slot]["state"] == "parked"
    engine.release(first.id)
    engine.cancel(second.id)
    run.finish()
    assert first.generated == 40
