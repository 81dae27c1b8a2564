"""Searching lists of millions: each meaning of a term is one look into an index, for the newest rows."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet

from inference.models import ApiKey, Chat, Generation, Message, Preemption

NEWEST = 1_000  # rows of one person, key or chat that are found
NAMED = 10  # people, and keys, that a term can mean
HEX = re.compile(r"[0-9a-f]{4,32}")


def ids_that_begin(term: str) -> tuple[UUID, UUID] | None:
    """The first and the last id that begin so; None for what is no beginning of one, or too short."""
    digits = term.replace("-", "").lower()
    if not HEX.fullmatch(digits):
        return None
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def generations(found: QuerySet[Generation], term: str) -> QuerySet[Generation]:
    """Those whose id begins with `term`, and the newest of whom it names: people and API keys."""
    people = User.objects.filter(username__icontains=term).order_by("username")[:NAMED]
    keys = ApiKey.objects.filter(Q(name__icontains=term) | Q(prefix__startswith=term))[:NAMED]
    newest = found.order_by("-created_at").values_list("pk", flat=True)
    pks = {pk for person in people for pk in newest.filter(user=person)[:NEWEST]}
    pks.update(pk for key in keys for pk in newest.filter(api_key=key)[:NEWEST])
    if ids := ids_that_begin(term):
        pks.update(found.order_by("pk").filter(pk__range=ids).values_list("pk", flat=True)[:NEWEST])
    return found.filter(pk__in=pks)


def parks(found: QuerySet[Preemption], term: str) -> QuerySet[Preemption]:
    """Those of the generations whose id begins with `term`."""
    ids = ids_that_begin(term)
    return found.filter(generation__gte=ids[0], generation__lte=ids[1]) if ids else found.none()


def messages(found: QuerySet[Message], term: str) -> QuerySet[Message]:
    """Those of the newest chats whose title has `term`, or whose owner's name has it."""
    named = Q(title__icontains=term) | Q(user__username__icontains=term)
    chats: Any = Chat.objects.filter(named).order_by("-updated_at").values_list("pk", flat=True)[:NEWEST]
    return found.filter(chat__in=list(chats))
