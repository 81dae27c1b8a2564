from __future__ import annotations

import json

import pytest

from inference.wire.api import Defaults
from inference.wire.errors import RequestError
from inference.wire.status import health, models, props, slots
from tests.wire.examples import snapshot


def test_health_is_ok_once_one_worker_is_ready():
    assert health([snapshot(state="loading"), snapshot()]) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("snapshots", "message"),
    [
        ([snapshot(state="loading")], "Loading model"),
        ([snapshot(state="stopping")], "No worker is running."),
        ([], "No worker is running."),
    ],
)
def test_health_is_unavailable_before_that(snapshots, message):
    error = {"code": 503, "message": message, "type": "unavailable_error"}
    assert health(snapshots) == (503, {"error": error})


def test_slots_tell_what_runs_and_what_is_parked():
    states = [(s["id"], s["is_processing"], s["is_preempted"]) for s in slots([snapshot()])]
    assert states == [(0, True, False), (1, True, True), (2, False, False)]
    assert [s["is_held"] for s in slots([snapshot()])] == [False, True, False]
    first = slots([snapshot()])[0]
    assert (first["n_prompt_tokens"], first["n_ctx"], first["n_decoded"]) == (100, 512, 20)


def test_slots_of_several_workers_are_listed_together():
    assert [s["worker"] for s in slots([snapshot(), snapshot(worker="w2")])] == ["w1"] * 3 + ["w2"] * 3


def test_slots_tell_neither_owners_nor_generations():
    told = json.dumps(slots([snapshot()]))
    assert not any(secret in told for secret in ("alice", "bob", "carol", "g0", "g1"))


def test_props_describe_the_model_and_the_defaults():
    body = props([snapshot(state="loading"), snapshot()], Defaults(temperature=0.4, max_tokens=32))
    settings = body["default_generation_settings"]
    assert (settings["n_ctx"], settings["params"]["temperature"], settings["params"]["n_predict"]) == (
        512,
        0.4,
        32,
    )
    assert (body["total_slots"], body["model_alias"]) == (6, "smollm2")
    assert body["chat_template"] == "{{ messages }}"


def test_props_name_the_models_file_but_not_its_folder():
    assert props([snapshot()], Defaults())["model_path"] == "smollm2.gguf"


@pytest.mark.parametrize(
    ("swap", "told"),
    [("pieces", "swap in pieces"), ("whole", "swap as a whole"), ("none", "recompute"), ("off", "off")],
)
def test_props_tell_how_parked_state_is_kept(swap, told):
    assert props([snapshot(swap=swap)], Defaults())["preemption"] == told


def test_props_need_a_worker():
    with pytest.raises(RequestError) as e:
        props([], Defaults())
    assert e.value.status == 503


def test_models_are_listed_once_whatever_the_number_of_workers():
    body = models([snapshot(), snapshot(worker="w2"), snapshot(state="loading", model={"alias": "other"})])
    assert body["object"] == "list"
    (model,) = body["data"]
    assert (model["id"], model["object"], model["created"]) == ("smollm2", "model", 1700000000)
    assert (model["meta"]["n_ctx_train"], model["meta"]["n_vocab"]) == (8192, 49152)


def test_no_worker_means_no_model():
    assert models([]) == {"object": "list", "data": []}
