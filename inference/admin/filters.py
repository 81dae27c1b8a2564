"""Filters whose choices are found without reading the table: a look into an index for each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db import connections, router
from django.db.models import F, Model, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from inference.messages import PRIORITIES, priority_name
from inference.models import ApiKey, Preemption

if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]

MOST_CHOICES = 100
RECENT_KEYS = 20
# Each value is the least that is greater than the one before it.
DISTINCT = """
WITH RECURSIVE found(value) AS (
    SELECT min({column}) FROM {table}
    UNION ALL
    SELECT (SELECT min({column}) FROM {table} WHERE {column} > found.value) FROM found
    WHERE found.value IS NOT NULL
)
SELECT value FROM found WHERE value IS NOT NULL LIMIT {limit}
"""


def distinct(model: type[Model], field: str) -> list[Any]:
    """The values that an indexed column has, in order; the first MOST_CHOICES of them."""
    connection = connections[router.db_for_read(model)]
    quote = connection.ops.quote_name
    column = quote(field)
    sql = DISTINCT.format(column=column, table=quote(model._meta.db_table), limit=MOST_CHOICES)
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [value for (value,) in cursor.fetchall()]


class ValueFilter(admin.SimpleListFilter):
    """By one value of a column of text."""

    parameter_name: str  # the column

    def lookups(self, request: HttpRequest, model_admin: AnyAdmin) -> Iterable[tuple[str, str]]:
        values = filter(None, distinct(model_admin.model, self.parameter_name))
        return [(value, self.label(value)) for value in values]

    def label(self, value: str) -> str:
        return value

    def has_output(self) -> bool:
        return bool(self.value()) or super().has_output()

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset.filter(**{self.parameter_name: value}) if value else queryset


class ApiFilter(ValueFilter):
    title, parameter_name = _("API"), "api"


class ModelFilter(ValueFilter):
    title, parameter_name = _("model"), "model"


class WorkerFilter(ValueFilter):
    title, parameter_name = _("worker"), "worker"


class CauseFilter(ValueFilter):
    title, parameter_name = _("cause of its last park"), "park_cause"
    words: ClassVar[dict[str, Any]] = dict(Preemption.Cause.choices)

    def label(self, value: str) -> str:
        return str(self.words.get(value, value))


class KindFilter(CauseFilter):
    title, parameter_name = _("kind of its last park"), "park_kind"
    words = dict(Preemption.Kind.choices)


class PriorityFilter(admin.SimpleListFilter):
    """By the priorities that were asked for, each by its word or its number."""

    title, parameter_name = _("priority"), "priority"

    def lookups(self, request: HttpRequest, model_admin: AnyAdmin) -> Iterable[tuple[str, str]]:
        names = [priority_name(number) for number in distinct(model_admin.model, "priority")]
        return [(name, gettext(name).capitalize()) for name in names]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value() or ""
        if value in PRIORITIES:
            return queryset.filter(priority=PRIORITIES[value])
        try:
            return queryset.filter(priority=int(value))
        except ValueError:  # no number, or thousands of digits
            return queryset


class KeyFilter(admin.SimpleListFilter):
    """By API key: the ones used last, the one that is meant, or none. A key's own page leads here, too."""

    title, parameter_name = _("API key"), "api_key"

    def lookups(self, request: HttpRequest, model_admin: AnyAdmin) -> Iterable[tuple[str, str]]:
        recent = list(ApiKey.objects.order_by(F("last_used_at").desc(nulls_last=True), "-pk")[:RECENT_KEYS])
        meant = self._meant()
        if meant is not None and meant not in [key.pk for key in recent]:
            recent += ApiKey.objects.filter(pk=meant)
        return [*((str(key.pk), str(key)) for key in recent), ("none", gettext("None"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "none":
            return queryset.filter(api_key=None)
        meant = self._meant()
        return queryset if meant is None else queryset.filter(api_key=meant)

    def _meant(self) -> int | None:
        value = self.value() or ""
        return int(value) if value.isdecimal() and len(value) < 19 else None


class ParkFilter(admin.SimpleListFilter):
    """By what became of a park."""

    title, parameter_name = _("outcome"), "outcome"

    def lookups(self, request: HttpRequest, model_admin: AnyAdmin) -> Iterable[tuple[str, str]]:
        return [
            ("open", gettext("Parked now")),
            ("resumed", gettext("Resumed")),
            ("ended", gettext("Ended while parked")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "open":
                return queryset.filter(resumed_at=None, waited_s=None)
            case "ended":
                return queryset.filter(resumed_at=None).exclude(waited_s=None)
            case "resumed":
                return queryset.exclude(resumed_at=None)
        return queryset
