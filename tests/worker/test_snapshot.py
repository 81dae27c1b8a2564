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


def test_the_head_is_told_with_the_cells_that_it_waits_for(engine: Engine) -> None:
    run = Run(engine)
    run.add(" ".join([KNIGHT] * 20), 30)
    while not engine.residents or not engine.residents[0].decoding:
        run.step()
    snapshots = Snapshots(engine)
    assert snapshots.take()["head"] is None
    waiting = run.add(" ".join([FOX] * 12), 10)
    waiting.owner = "ada"
    run.step()
    picture = snapshots.take()
    head, free = picture["head"], 256 - picture["pool"]["used"]
    assert (head["generation"], head["owner"], head["slots"]) == (waiting.id, "ada", 1)
    assert head["free"] <= free < waiting.n_prompt <= head["needs"]
    [parked] = picture["parked"]
    assert parked["tokens"] == waiting.n_prompt
    assert waiting.slot < 0 or parked["method"] == "recompute"
    run.finish()
    assert snapshots.take()["head"] is None


def test_silence_is_how_long_a_chat_has_got_no_token_and_who_is_held_is_no_part_of_it(
    model: Model,
) -> None:
    now = 50.0
    context = Context(model, n_ctx=256, n_seq_max=2, n_batch=256)
    engine = Engine(context, n_cells=256, n_slots=2, n_ctx_seq=256, clock=lambda: now)
    run, snapshots = Run(engine), Snapshots(engine)

    def silence() -> float:
        return float(snapshots.take()["silence"])

    first, second = run.add(KNIGHT, 60), run.add(FOX, 60)
    now += 3
    assert silence() == 3
    while not (first.decoding and second.decoding):
        run.step()
    assert silence() == 0
    third = run.add(FOX, 60)
    now += 2
    assert silence() == 2
    engine.cancel(third.id)
    assert silence() == 0
    engine.hold(first.id)
    now += 9
    assert silence() == 0
    engine.release(first.id)
    assert silence() == 9
    run.finish()
    assert snapshots.take()["histograms"]["first_token_seconds"]["sum"] == 6
    context.close()
