"""GET /metrics: Prometheus text in llama-server's names, summed over the workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Snapshot = dict[str, Any]

_COUNTERS = {
    "prompt_tokens_total": "Prompt tokens processed.",
    "prompt_seconds_total": "Seconds spent on prompts.",
    "tokens_predicted_total": "Tokens generated.",
    "tokens_predicted_seconds_total": "Seconds spent on generating.",
    "n_decode_total": "Calls of llama_decode.",
    "n_preempt_total": "Times that a sequence was parked.",
    "n_resume_total": "Times that a parked sequence was resumed.",
}


class _Workers(Collector):
    """The metrics of one moment."""

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self._snapshots = snapshots

    def collect(self) -> Iterator[Metric]:
        for name, text in _COUNTERS.items():
            yield CounterMetricFamily(f"llamacpp:{name}", text, value=self._counter(name))
        for name, text, value in self._gauges():
            yield GaugeMetricFamily(f"llamacpp:{name}", text, value=value)

    def _gauges(self) -> Iterator[tuple[str, str, float]]:
        total, snapshots = self._counter, self._snapshots
        cells = sum(s["pool"]["cells"] for s in snapshots)
        used = sum(s["pool"]["used"] for s in snapshots)
        busy = sum(
            s["counters"]["n_busy_slots_per_decode"] * s["counters"]["n_decode_total"] for s in snapshots
        )
        processing = sum(slot["state"] in ("prefill", "decode") for s in snapshots for slot in s["slots"])
        prompt_speed = _ratio(total("prompt_tokens_total"), total("prompt_seconds_total"))
        speed = _ratio(total("tokens_predicted_total"), total("tokens_predicted_seconds_total"))

        yield (
            "n_busy_slots_per_decode",
            "Slots in a decode, on average.",
            _ratio(busy, total("n_decode_total")),
        )
        yield "prompt_tokens_seconds", "Prompt tokens per second, on average.", prompt_speed
        yield "predicted_tokens_seconds", "Generated tokens per second, on average.", speed
        yield "requests_processing", "Requests that hold a slot and run.", processing
        yield "requests_deferred", "Requests that wait for a slot.", sum(len(s["queue"]) for s in snapshots)
        yield "requests_preempted", "Requests that are parked.", sum(len(s["parked"]) for s in snapshots)
        yield "kv_cache_usage_ratio", "Share of the pool's cells in use; 1 is full.", _ratio(used, cells)
        yield "kv_cache_tokens", "Cells of the pool in use.", used
        yield "preempt_ram_bytes", "Bytes of host RAM held by parked sequences.", total("preempt_ram_bytes")

    def _counter(self, name: str) -> float:
        return float(sum(snapshot["counters"][name] for snapshot in self._snapshots))


def metrics(snapshots: Sequence[Snapshot]) -> bytes:
    """The exposition text, of CONTENT_TYPE."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Workers(snapshots))
    return generate_latest(registry)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
