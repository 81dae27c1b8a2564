"""What the admin's pages have in common: they show what happened, and stay quick over millions of rows."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.contrib.admin import ShowFacets
from django.contrib.admin.views.main import ChangeList
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from .dates import Choice, periods
from .paging import CappedPaginator

if TYPE_CHECKING:
    AnyAdmin = admin.ModelAdmin[Any]
else:
    AnyAdmin = admin.ModelAdmin


class ReadOnly:
    """Rows that tell what happened: editing one would lie."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class LargeChangeList(ChangeList):
    """A list none of whose queries reads the whole table."""

    def periods(self) -> tuple[Choice | None, list[Choice]]:
        """The step back and the choices of the date hierarchy."""
        assert self.date_hierarchy
        return periods(self, self.date_hierarchy)


class LargeTable(AnyAdmin):
    """A list of a table that grows with every request: counted up to a bound, ordered by time alone."""

    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_max_show_all = 0
    sortable_by: ClassVar[Any] = ()  # most columns have no index of their own

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return LargeChangeList


def moment(when: datetime | None) -> SafeString | str:
    """A day, and below it the time to the second."""
    if when is None:
        return "–"
    local = timezone.localtime(when)
    parts = (local.isoformat(timespec="seconds"), local.date().isoformat(), f"{local:%H:%M:%S}")
    return format_html('<time class="berth-moment" datetime="{}">{} <span>{}</span></time>', *parts)


def badge(state: str, label: str) -> SafeString:
    return format_html('<span class="berth-badge berth-{}">{}</span>', state, label)


def link_to(row: Model | None, text: str = "") -> SafeString | str:
    """To a row's own page; a dash for none."""
    if row is None:
        return "–"
    url = reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
    return format_html('<a href="{}">{}</a>', url, text or row)
