"""Whether it was an operator who has ended an answer: its reader, who did not, is told so."""

from __future__ import annotations

import contextlib

from channels.db import database_sync_to_async
from django.db import DatabaseError
from django.db.models import Exists, OuterRef, QuerySet

from inference.broker import control
from inference.broker.connect import AWAY
from inference.models import Generation, OperatorAction

_ENDS = OperatorAction.objects.filter(kind=OperatorAction.Kind.CANCEL)


def noted(rows: QuerySet[Generation]) -> QuerySet[Generation]:
    """The same rows, of which `was_ended` can tell."""
    return rows.annotate(by_operator=Exists(_ENDS.filter(generation=OuterRef("pk"))))


def was_ended(generation: Generation) -> bool:
    """By an operator. False of a row that was not `noted`."""
    return bool(getattr(generation, "by_operator", False))


async def ends(generation: Generation) -> bool:
    """Of one whose end has just come, perhaps before the row that tells of it."""
    with contextlib.suppress(*AWAY):
        if await control.cancelled_by_hand(generation.id.hex):
            return True
    with contextlib.suppress(DatabaseError):
        return bool(await _is_noted(generation))
    return False


@database_sync_to_async  # type: ignore[untyped-decorator]
def _is_noted(generation: Generation) -> bool:
    return _ENDS.filter(generation=generation.pk).exists()
