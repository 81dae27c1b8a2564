"""Parks: each with its cause, how it was done, what it took and how long it lasted."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from inference.models import Preemption

from . import search
from .base import ReadOnly, link_to, moment
from .export import CsvExport
from .filters import ParkFilter
from .units import lasted, mebibytes


@admin.register(Preemption)
class PreemptionAdmin(ReadOnly, CsvExport):
    list_display = (
        "parked",
        "of",
        "asked_by",
        "cause",
        "kind",
        "slot",
        "cells",
        "ram",
        "resumed",
        "waited",
    )
    fields: ClassVar[Any] = (
        "generation",
        "cause",
        "kind",
        "slot",
        "cells",
        "ram",
        "parked_at",
        "resumed_at",
        "waited",
    )
    readonly_fields = ("ram", "waited")
    list_filter = ("cause", "kind", ParkFilter)
    list_select_related = ("generation__user", "generation__api_key")
    search_fields = ("generation__id",)
    search_help_text = _("The beginning of a generation's id (four digits at least)")
    date_hierarchy = "parked_at"
    csv_columns = (
        "generation",
        "parked_at",
        "resumed_at",
        "waited_s",
        "cause",
        "kind",
        "slot",
        "cells",
        "bytes",
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Preemption], search_term: str
    ) -> tuple[QuerySet[Preemption], bool]:
        term = search_term.strip()
        return (search.parks(queryset, term) if term else queryset), False

    @admin.display(description=_("parked at"))
    def parked(self, park: Preemption) -> SafeString | str:
        return moment(park.parked_at)

    @admin.display(description=_("resumed at"))
    def resumed(self, park: Preemption) -> SafeString | str:
        return moment(park.resumed_at)

    @admin.display(description=_("Generation"))
    def of(self, park: Preemption) -> SafeString | str:
        return link_to(park.generation, park.generation.id.hex[:8])

    @admin.display(description=_("Asked by"))
    def asked_by(self, park: Preemption) -> str:
        return str(park.generation.user or park.generation.api_key or "–")

    @admin.display(description=_("Host RAM"))
    def ram(self, park: Preemption) -> str:
        return mebibytes(park.bytes)

    @admin.display(description=_("Waited"))
    def waited(self, park: Preemption) -> str:
        return lasted(park.waited_s)
