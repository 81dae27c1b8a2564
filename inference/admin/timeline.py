"""A generation's life as spans of time: worked out from its row and its parks, drawn and told in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils.translation import gettext_lazy as _

from inference.models import Generation, Preemption

WIDTH = 1000.0  # units of the drawing
LEAST = 3.0  # units: what a span takes in the drawing, however short it was

TITLES = {
    "queued": _("Queued"),
    "prefill": _("Prefill"),
    "decode": _("Decode"),
    "running": _("Prefill or decode"),
    "parked": _("Parked"),
}


@dataclass(frozen=True, slots=True)
class Span:
    """`begin` and `end` are seconds since the generation was asked for."""

    kind: str  # of TITLES
    begin: float
    end: float
    park: Preemption | None = None
    is_open: bool = False  # it goes on

    @property
    def title(self) -> str:
        return str(TITLES[self.kind])

    @property
    def seconds(self) -> float:
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Life:
    """The spans follow each other from 0 to `seconds`."""

    spans: Sequence[Span]
    seconds: float
    is_over: bool

    def drawing(self) -> list[tuple[Span, str, str]]:
        """Each span with its place and width in a drawing WIDTH units wide. A short one covers a little of
        the next rather than not being seen."""
        scale = WIDTH / self.seconds if self.seconds > 0 else 0.0
        drawn = []
        for span in self.spans:
            width = max(LEAST, scale * span.seconds)
            x = min(scale * span.begin, WIDTH - width)
            drawn.append((span, f"{x:.2f}", f"{width:.2f}"))
        return sorted(drawn, key=lambda one: one[0].park is not None)  # parks above the rest

    def kinds(self) -> list[tuple[str, str, float, int]]:
        """(kind, title, seconds in all, number of spans), in the order in which they first came."""
        totals: dict[str, tuple[float, int]] = {}
        for span in self.spans:
            total, n = totals.get(span.kind, (0.0, 0))
            totals[span.kind] = (total + span.seconds, n + 1)
        return [(kind, str(TITLES[kind]), total, n) for kind, (total, n) in totals.items()]


def life_of(generation: Generation, parks: Iterable[Preemption], now: datetime) -> Life:
    """What is known of it at `now`. While it runs, where prefill ends is not: that is told at its end."""
    born = generation.created_at
    length = max(0.0, ((generation.finished_at or now) - born).total_seconds())

    def since_birth(moment: datetime) -> float:
        return min(max(0.0, (moment - born).total_seconds()), length)

    times_parked = []
    for park in sorted(parks, key=lambda park: park.parked_at):
        end = park.resumed_at
        if end is None and park.waited_s is not None:
            end = park.parked_at + timedelta(seconds=park.waited_s)
        is_open = end is None and not generation.is_over
        begin = since_birth(park.parked_at)
        until = length if end is None else max(begin, since_birth(end))
        times_parked.append(Span("parked", begin, until, park, is_open))

    spans: list[Span] = []
    at = 0.0
    phases = _phases(generation, length, since_birth)
    for parked in times_parked:
        spans += _between(phases, at, parked.begin)
        begin = max(at, parked.begin)
        at = max(at, parked.end)
        spans.append(Span("parked", begin, at, parked.park, parked.is_open))
    spans += _between(phases, at, length)
    if spans and not generation.is_over and not any(span.is_open for span in spans):
        last = spans[-1]
        spans[-1] = Span(last.kind, last.begin, last.end, last.park, is_open=True)
    return Life(spans, length, generation.is_over)


Phase = tuple[str, float, float]  # kind, begin, end


def _phases(generation: Generation, length: float, since_birth: Callable[[datetime], float]) -> list[Phase]:
    """As if it had never been parked."""
    if generation.started_at is None:
        return [("queued", 0.0, length)]
    started = since_birth(generation.started_at)
    queued = ("queued", 0.0, started)
    if generation.ttft_s is None:
        kind = "prefill" if generation.is_over else "running"
        return [queued, (kind, started, length)]
    accepted = since_birth(generation.accepted_at or generation.created_at)
    first_token = min(max(started, accepted + generation.ttft_s), length)
    return [queued, ("prefill", started, first_token), ("decode", first_token, length)]


def _between(phases: Iterable[Phase], begin: float, end: float) -> list[Span]:
    """The parts of the phases that lie there."""
    parts = [(kind, max(begin, b), min(end, e)) for kind, b, e in phases]
    return [Span(kind, b, e) for kind, b, e in parts if e > b]
