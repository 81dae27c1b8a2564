"""What operators did to generations: the trace, which nobody can edit or delete."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from inference.models import OperatorAction

from .base import ReadOnly, moment
from .export import CsvExport


@admin.register(OperatorAction)
class OperatorActionAdmin(ReadOnly, CsvExport):
    list_display = ("done", "kind", "by", "chat", "place", "worker", "detail")
    list_filter = ("kind",)
    search_fields = ("by", "generation__startswith")
    search_help_text = _("The name of who did it, or the beginning of a generation's id")
    date_hierarchy = "created_at"
    readonly_fields = ("generation",)
    csv_columns = ("created_at", "kind", "by", "generation", "slot", "worker", "detail")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description=_("when"))
    def done(self, action: OperatorAction) -> SafeString | str:
        return moment(action.created_at)

    @admin.display(description=_("Slot"))
    def place(self, action: OperatorAction) -> str:
        return "–" if action.slot < 0 else str(action.slot)

    @admin.display(description=_("Generation"))
    def chat(self, action: OperatorAction) -> SafeString | str:
        if action.generation is None:
            return "–"
        url = reverse("admin:inference_generation_change", args=[action.generation])
        return format_html('<a href="{}">{}</a>', url, action.generation.hex[:8])
