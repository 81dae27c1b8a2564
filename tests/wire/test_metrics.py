from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from inference.wire.metrics import metrics
from tests.wire.examples import snapshot


def values(snapshots):
    families = text_string_to_metric_families(metrics(snapshots).decode())
    samples = [sample for family in families for sample in family.samples]
    assert not any(sample.labels for sample in samples)
    return {sample.name.removeprefix("llamacpp:"): sample.value for sample in samples}


ONE = {
    "prompt_tokens_total": 200,
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
}


def test_one_workers_metrics_and_nothing_of_the_process():
    assert values([snapshot()]) == ONE


def test_workers_are_summed_and_averages_are_weighed():
    counters = snapshot()["counters"] | {"n_decode_total": 300, "n_busy_slots_per_decode": 4.0}
    other = snapshot(pool={"cells": 1536, "used": 384 + 512}, counters=counters)
    both = values([snapshot(), other])
    assert (both["prompt_tokens_total"], both["n_preempt_total"], both["requests_deferred"]) == (400, 6, 2)
    assert (both["kv_cache_tokens"], both["kv_cache_usage_ratio"]) == (1024, 0.5)
    assert both["n_busy_slots_per_decode"] == 3.5
    assert both["predicted_tokens_seconds"] == 50


def test_without_workers_everything_is_zero():
    assert values([]) == dict.fromkeys(ONE, 0)


def test_each_metric_has_help_and_a_type():
    lines = metrics([snapshot()]).decode().splitlines()
    assert sum(line.startswith("# HELP llamacpp:") for line in lines) == len(ONE)
    assert sum(line.startswith("# TYPE llamacpp:") for line in lines) == len(ONE)
    assert "# TYPE llamacpp:n_preempt_total counter" in lines
    assert "# TYPE llamacpp:kv_cache_usage_ratio gauge" in lines
