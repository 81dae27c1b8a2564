"""The date hierarchy above a list. Django's reads every row to find the days that have one; this needs the
first and the last row of the table, which its index on the time has at its ends."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.text import capfirst
from django.utils.translation import gettext

if TYPE_CHECKING:
    from django.contrib.admin.views.main import ChangeList


class Choice(NamedTuple):
    """`link` is None for the period that is shown."""

    title: str
    link: str | None


def periods(changelist: ChangeList, field: str) -> tuple[Choice | None, list[Choice]]:
    """The step back, if there is one, and the years, months or days to choose from, whether or not a row
    that passes the other filters lies in them."""
    asked = [changelist.params.get(f"{field}__{unit}") for unit in ("year", "month", "day")]
    year, month, day = (int(value) if value else None for value in asked)

    def link(year: int | None = None, month: int | None = None, day: int | None = None) -> str:
        parts = {"year": year, "month": month, "day": day}
        kept = {f"{field}__{unit}": value for unit, value in parts.items() if value is not None}
        return changelist.get_query_string(kept, [f"{field}__"])

    if year and month and day:
        shown = date(year, month, day)
        back = Choice(_title(shown, "YEAR_MONTH_FORMAT"), link(year, month))
        return back, [Choice(_title(shown, "MONTH_DAY_FORMAT"), None)]
    ends = _ends(changelist.model, field)
    if ends is None:
        return None, []
    first, last = ends
    if not year and first.year == last.year:
        year = first.year
        month = first.month if first.month == last.month else None
    if not year:
        return None, [Choice(str(y), link(y)) for y in range(first.year, last.year + 1)]
    within: Callable[[date, date], bool] = lambda start, end: first <= end and start <= last  # noqa: E731
    if not month:
        spans = [(date(year, m, 1), date(year, m, monthrange(year, m)[1])) for m in range(1, 13)]
        months = [start for start, end in spans if within(start, end)]
        choices = [Choice(_title(m, "YEAR_MONTH_FORMAT"), link(year, m.month)) for m in months]
        return Choice(gettext("All dates"), link()), choices
    days = [date(year, month, d) for d in range(1, monthrange(year, month)[1] + 1)]
    choices = [Choice(_title(d, "MONTH_DAY_FORMAT"), link(year, month, d.day)) for d in days if within(d, d)]
    return Choice(str(year), link(year)), choices


def _title(day: date, format: str) -> str:
    return capfirst(date_format(day, format))


def _ends(model: Any, field: str) -> tuple[date, date] | None:
    """The days of the first and of the last row."""
    times = model._default_manager.values_list(field, flat=True)
    first, last = times.order_by(field).first(), times.order_by(f"-{field}").first()
    return (timezone.localtime(first).date(), timezone.localtime(last).date()) if first else None
