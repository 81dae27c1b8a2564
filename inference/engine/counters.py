"""What the engine counts of itself since its start."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

WAITS_S = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 300.0)
COPIES_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


@dataclass(slots=True)
class Histogram:
    """How many observations were at most each bound; the last count is of those above all bounds."""

    bounds: tuple[float, ...]
    counts: list[int] = field(init=False)
    sum: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.bounds) + 1)

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


@dataclass(slots=True)
class Counters:
    """Totals, under llama-server's names where it has them."""

    prompt_tokens_total: int = 0
    prompt_tokens_cached_total: int = 0  # that came from the prefix cache
    prompt_seconds_total: float = 0.0
    tokens_predicted_total: int = 0
    tokens_predicted_seconds_total: float = 0.0
    n_decode_total: int = 0
    busy_slots_total: int = 0
    n_preempt_total: int = 0
    n_resume_total: int = 0
    recomputed_tokens_total: int = 0
    context_shifts_total: int = 0
    parks: Counter[tuple[str, str]] = field(default_factory=Counter)  # by (cause, method)
    resumes: Counter[tuple[str, str]] = field(default_factory=Counter)
    parked_seconds: Histogram = field(default_factory=lambda: Histogram(WAITS_S))
    first_token_seconds: Histogram = field(default_factory=lambda: Histogram(WAITS_S))
    copy_out_seconds: Histogram = field(default_factory=lambda: Histogram(COPIES_S))  # of a park, whole
    copy_in_seconds: Histogram = field(default_factory=lambda: Histogram(COPIES_S))
