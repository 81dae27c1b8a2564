"""A list as CSV: every row that its filters let through, a few at a time however many there are."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.urls import URLPattern, path
from django.utils import timezone

from .base import LargeTable

AT_ONCE = 2_000  # rows: of one query, and of one piece of the answer
# Where a spreadsheet takes a text for a formula: at the beginning of a cell, or behind what is the end of one
# where a comma is the decimal point.
FORMULA = re.compile(r"(^|[;\r\n])(\s*[=+\-@＝＋－＠])")


class CsvExport(LargeTable):
    """A list with a link to itself as CSV. Texts of chats are in none of the columns."""

    csv_columns: Sequence[str] = ()  # names of fields, through relations as in a query

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.export)
        name = f"{self.opts.app_label}_{self.opts.model_name}_export"
        return [path("export/", view, name=name), *super().get_urls()]

    def export(self, request: HttpRequest) -> HttpResponseBase:
        if not self.has_view_permission(request):
            raise PermissionDenied
        rows = self.get_changelist_instance(request).get_queryset(request)
        reply = StreamingHttpResponse(self._lines(rows), content_type="text/csv; charset=utf-8")
        name = f"{self.opts.model_name}s-{timezone.now():%Y-%m-%d-%H%M}.csv"
        reply["Content-Disposition"] = f'attachment; filename="{name}"'
        return reply

    async def _lines(self, rows: QuerySet[Any]) -> AsyncIterator[bytes]:
        """One query for each piece, so that no transaction is held open by a client that reads slowly."""
        field = self.date_hierarchy
        assert field
        columns = ("pk", field, *self.csv_columns)
        found: Any = rows.order_by(f"-{field}", "-pk").values_list(*columns)
        piece, header = found, [column.replace("__", " ") for column in self.csv_columns]
        yield codecs.BOM_UTF8 + _csv([header])  # or Excel would take it for the machine's old encoding
        while read := await _read(piece[:AT_ONCE]):
            yield _csv([[_cell(value) for value in row[2:]] for row in read])
            last_pk, last_time = read[-1][:2]
            older = Q(**{f"{field}__lt": last_time}) | Q(pk__lt=last_pk)
            piece = found.filter(older, **{f"{field}__lte": last_time})


@sync_to_async
def _read(rows: QuerySet[Any]) -> list[Any]:
    return list(rows)


def _csv(rows: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    if isinstance(value, str):
        return FORMULA.sub(r"\1'\2", value)
    return value
