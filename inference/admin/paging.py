"""Pages of a list that is never counted to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.paginator import Paginator
from django.utils.functional import cached_property

if TYPE_CHECKING:
    AnyPaginator = Paginator[Any]
else:
    AnyPaginator = Paginator

CAP = 10_000  # rows; who looks for older ones goes by date, filter or search


class CappedPaginator(AnyPaginator):
    """`count` is exact up to CAP, and CAP for what is longer: so many rows of an index are read at most."""

    @cached_property
    def count(self) -> int:
        return min(self._read, CAP)

    @property
    def is_capped(self) -> bool:
        return self._read > CAP

    @cached_property
    def _read(self) -> int:
        rows: Any = self.object_list
        n: int = rows.order_by().values("pk")[: CAP + 1].count()
        return n
