"""GET /metrics: Prometheus text in llama-server's names, summed over the workers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Snapshot = dict[str, Any]

_COUNTERS = {
    "prompt_tokens_total": "Prompt tokens processed.",
    "prompt_tokens_cached_total": "Prompt tokens that were kept from earlier prompts, and not processed.",
    "prompt_seconds_total": "Seconds spent on prompts.",
    "tokens_predicted_total": "Tokens generated.",
    "tokens_predicted_seconds_total": "Seconds spent on generating.",
    "n_decode_total": "Calls of llama_decode.",
    "n_preempt_total": "Times that a sequence was parked.",
    "n_resume_total": "Times that a parked sequence was resumed.",
    "recomputed_tokens_total": "Tokens computed again after parks by recompute.",
    "copied_out_bytes_total": "Bytes of KV state copied to host RAM.",
    "copied_in_bytes_total": "Bytes of KV state copied back from host RAM.",
    "context_shifts_total": "Times that a full context forgot a part of it.",
}
_MOVES = {
    "parks": "Parks by cause and method (swap or recompute).",
    "resumes": "Resumes by the cause and method of the park.",
}
_HISTOGRAMS = {
    "first_token_seconds": "Seconds from a request's acceptance to its first token.",
    "parked_seconds": "Seconds from a park to its resume.",
    "copy_out_seconds": "Seconds of copying that a park by swap took.",
    "copy_in_seconds": "Seconds of copying that a resume took.",
}


class _Workers(Collector):
    """The metrics of one moment."""

    def __init__(self, snapshots: Sequence[Snapshot]) -> None:
        self._snapshots = snapshots

    def collect(self) -> Iterator[Metric]:
        for name, text in _COUNTERS.items():
            yield CounterMetricFamily(f"llamacpp:{name}", text, value=self._counter(name))
        rotations = [n for s in self._snapshots for cause, _, n in s["moves"]["parks"] if cause == "rotation"]
        text = "Parks that gave the head of those who wait a place."
        yield CounterMetricFamily("llamacpp:rotations", text, value=sum(rotations))
        for name, text, value in self._gauges():
            yield GaugeMetricFamily(f"llamacpp:{name}", text, value=value)
        for name, text in _MOVES.items():
            yield self._moves(name, text)
        for name, text in _HISTOGRAMS.items():
            yield self._histogram(name, text)

    def _moves(self, name: str, text: str) -> CounterMetricFamily:
        family = CounterMetricFamily(f"llamacpp:{name}", text, labels=("cause", "method"))
        sums: Counter[tuple[str, str]] = Counter()
        for snapshot in self._snapshots:
            for cause, method, n in snapshot["moves"][name]:
                sums[cause, method] += n
        for labels, n in sorted(sums.items()):
            family.add_metric(labels, n)
        return family

    def _histogram(self, name: str, text: str) -> HistogramMetricFamily:
        found = [snapshot["histograms"][name] for snapshot in self._snapshots]
        family = HistogramMetricFamily(f"llamacpp:{name}", text)
        if found:
            buckets, below = [], 0
            for i, bound in enumerate((*found[0]["bounds"], "+Inf")):
                below += sum(histogram["counts"][i] for histogram in found)
                buckets.append((str(bound), below))
            family.add_metric((), buckets, sum_value=sum(histogram["sum"] for histogram in found))
        return family

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
        yield (
            "preempt_ram_kept_bytes",
            "Bytes of host RAM that resumed sequences keep for their next park.",
            total("preempt_ram_kept_bytes"),
        )
        yield "cache_ram_bytes", "Bytes of host RAM that computed prompts take.", total("cache_ram_bytes")
        held = sum(bool(chat.get("held")) for s in snapshots for chat in s["parked"])
        yield "requests_held", "Parked requests that an operator holds.", held
        now = time.time()
        waits = [
            now - w["since"] for s in snapshots for w in (*s["parked"], *s["queue"]) if not w.get("held")
        ]
        yield "longest_wait_seconds", "The longest current wait for a place.", max(waits, default=0.0)

    def _counter(self, name: str) -> float:
        return float(sum(snapshot["counters"][name] for snapshot in self._snapshots))


def metrics(snapshots: Sequence[Snapshot]) -> bytes:
    """The exposition text, of CONTENT_TYPE."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Workers(snapshots))
    return generate_latest(registry)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
