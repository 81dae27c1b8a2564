"""What a person has used: one query over an index of the person's generations by time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import BooleanField, Case, Count, IntegerField, Sum, Value, When
from django.utils import timezone
from django.utils.translation import gettext as _

from dashboard import conversation, titles
from inference.models import Generation

SPANS = (1, 7, 30)  # days


class Figures(NamedTuple):
    """Of some generations. `paused` in seconds."""

    answers: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    paused: float = 0.0

    def plus(self, other: Figures) -> Figures:
        return Figures(
            self.answers + other.answers,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.paused + other.paused,
        )


class Place(NamedTuple):
    """Where answers were asked for: with a key, or without one in the browser, or with one that is gone."""

    key: int | None
    in_browser: bool


@dataclass(frozen=True)
class Usage:
    """`by_place[place][i]` are the figures of SPANS[i]."""

    by_place: Mapping[Place, tuple[Figures, ...]]

    @property
    def totals(self) -> list[tuple[str, Figures]]:
        """The name of each span and what was used in it."""
        names = (_("24 hours"), _("7 days"), _("30 days"))
        return [(name, _sum(spans[i] for spans in self.by_place.values())) for i, name in enumerate(names)]

    @property
    def in_browser(self) -> Figures:
        """Of the longest span."""
        return _sum(spans[-1] for place, spans in self.by_place.items() if place.in_browser)

    @property
    def gone(self) -> Figures:
        """By keys that were deleted, in the longest span."""
        return _sum(s[-1] for place, s in self.by_place.items() if not place.in_browser and place.key is None)

    def of_key(self, pk: int) -> Figures:
        """In the longest span."""
        return _sum(spans[-1] for place, spans in self.by_place.items() if place.key == pk)


def _sum(figures: Iterable[Figures]) -> Figures:
    total = Figures()
    for one in figures:
        total = total.plus(one)
    return total


def of(user: User) -> Usage:
    """Up to now, what is on the way included."""
    now = timezone.now()
    # Each row is read once, for the shortest span that it lies in; the longer ones are summed here.
    span = Case(
        *(When(created_at__gte=now - timedelta(days=days), then=Value(i)) for i, days in enumerate(SPANS)),
        output_field=IntegerField(),
    )
    is_page = When(api=conversation.API, api_key=None, then=Value(True))
    where = Case(is_page, default=Value(False), output_field=BooleanField())
    mine = Generation.objects.filter(user=user, created_at__gte=now - timedelta(days=max(SPANS))).order_by()
    rows: Any = (
        mine.exclude(api=titles.API)  # nobody asked for these
        .annotate(in_browser=where, span=span)
        .values("api_key_id", "in_browser", "span")
        .annotate(
            answers=Count("*"),
            prompt=Sum("prompt_tokens", default=0),
            completion=Sum("completion_tokens", default=0),
            paused=Sum("parked_s", default=0.0),
        )
    )
    found: dict[Place, list[Figures]] = {}
    for row in rows:
        figures = Figures(row["answers"], row["prompt"], row["completion"], row["paused"])
        spans = found.setdefault(Place(row["api_key_id"], row["in_browser"]), [Figures()] * len(SPANS))
        for i in range(row["span"], len(SPANS)):
            spans[i] = spans[i].plus(figures)
    return Usage({place: tuple(spans) for place, spans in found.items()})
