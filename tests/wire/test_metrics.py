from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from inference.wire.metrics import metrics
from tests.wire.examples import snapshot


def values(snapshots):
    families = text_string_to_metric_families(metrics(snapshots).decode())
    samples = [sample for family in families for sample in family.samples]
    return {s.name.removeprefix("llamacpp:"): s.value for s in samples if not s.labels}


def labelled(snapshots, name):
    families = text_string_to_metric_families(metrics(snapshots).decode())
    found = [sample for family in families for sample in family.samples if sample.name == f"llamacpp:{name}"]
    return {tuple(sample.labels.values()): sample.value for sample in found}


ONE = {
    "prompt_tokens_total": 200,
    "prompt_tokens_cached_total": 60,
    "prompt_seconds_total": 4,
    "tokens_predicted_total": 300,
    "tokens_predicted_seconds_total": 6,
    "n_decode_total": 100,
    "n_preempt_total": 3,
    "n_resume_total": 2,
    "n_busy_slots_per_decode": 2,
    "prompt_tokens_seconds": 50,
    "predicted_tokens_seconds": 50,
    "requests_processing": 1,
    "requests_deferred": 1,
    "requests_preempted": 1,
    "kv_cache_usage_ratio": 0.25,
    "kv_cache_tokens": 128,
    "preempt_ram_bytes": 4096,
    "preempt_ram_kept_bytes": 512,
    "cache_ram_bytes": 2048,
    "recomputed_tokens_total": 7,
    "copied_out_bytes_total": 9000,
    "copied_in_bytes_total": 8000,
    "context_shifts_total": 0,
    "rotations_total": 1,
    "requests_held": 0,
    "parked_seconds_count": 3,
    "parked_seconds_sum": 4.5,
    "first_token_seconds_count": 4,
    "first_token_seconds_sum": 11.5,
    "copy_out_seconds_count": 0,
    "copy_out_seconds_sum": 0,
    "copy_in_seconds_count": 0,
    "copy_in_seconds_sum": 0,
}


def test_one_workers_metrics_and_nothing_of_the_process():
    found = values([snapshot()])
    assert found.pop("longest_wait_seconds") > 0
    assert found == ONE


def test_parks_are_told_by_cause_and_method_over_all_workers():
    expected = {("pressure", "swap"): 4, ("rotation", "recompute"): 2}
    assert labelled([snapshot(), snapshot()], "parks_total") == expected
    assert labelled([snapshot()], "resumes_total") == {("pressure", "swap"): 2}


def test_times_parked_are_a_cumulative_histogram():
    assert labelled([snapshot(), snapshot()], "parked_seconds_bucket") == {
        ("1.0",): 2,
        ("5.0",): 6,
        ("+Inf",): 6,
    }


def test_a_chat_that_is_held_waits_for_no_place():
    parked = [chat | {"held": True, "since": 0.0} for chat in snapshot()["parked"]]
    found = values([snapshot(parked=parked, queue=[])])
    assert (found["requests_held"], found["requests_preempted"], found["longest_wait_seconds"]) == (1, 1, 0)


def test_workers_are_summed_and_averages_are_weighed():
    counters = snapshot()["counters"] | {"n_decode_total": 300, "n_busy_slots_per_decode": 4.0}
    other = snapshot(pool={"cells": 1536, "used": 384 + 512}, counters=counters)
    both = values([snapshot(), other])
    assert (both["prompt_tokens_total"], both["n_preempt_total"], both["requests_deferred"]) == (400, 6, 2)
    assert (both["kv_cache_tokens"], both["kv_cache_usage_ratio"]) == (1024, 0.5)
    assert both["n_busy_slots_per_decode"] == 3.5
    assert both["predicted_tokens_seconds"] == 50


def test_without_workers_everything_is_zero():
    expected = {name: 0 for name in ONE if not name.endswith(("_count", "_sum"))}
    assert values([]) == expected | {"longest_wait_seconds": 0}


def test_each_metric_has_help_and_a_type():
    lines = metrics([snapshot()]).decode().splitlines()
    named = [line.split()[2] for line in lines if line.startswith("# TYPE llamacpp:")]
    assert named == [line.split()[2] for line in lines if line.startswith("# HELP llamacpp:")]
    assert len(named) == len(set(named)) == len(ONE) - 8 + 4 + 2 + 1
    assert "# TYPE llamacpp:n_preempt_total counter" in lines
    assert "# TYPE llamacpp:kv_cache_usage_ratio gauge" in lines
