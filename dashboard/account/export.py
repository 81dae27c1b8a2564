"""All that is kept of a person, as JSON: a few rows at a time, however many there are."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Q, QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from dashboard.replies import Request
from inference.models import ApiKey, Chat, Generation, Message, Share, UserLimits

from . import bounds

AT_ONCE = 500  # rows of one query, and of one piece of the answer
ACCOUNT = ("username", "first_name", "last_name", "email", "date_joined", "last_login")
LIMITS = ("max_priority", "max_concurrent")
KEY = ("id", "name", "prefix", "created_at", "last_used_at", "expires_at", "revoked_at")
CHAT = (
    *("id", "title", "leaf_id", "system_prompt", "temperature", "top_p", "max_tokens", "seed"),
    *("created_at", "updated_at", "deleted_at"),
)
MESSAGE = ("id", "parent_id", "role", "content", "created_at")
SHARE = ("id", "token", "leaf_id", "created_at", "revoked_at")
GENERATION = (
    *("id", "api", "model", "api_key_id", "message_id", "state", "finish_reason", "error"),
    *("prompt_tokens", "completion_tokens", "parks", "parked_s", "ttft_s"),
    *("created_at", "started_at", "finished_at"),
)
Row = dict[str, Any]


@login_required
@never_cache
@require_safe
def export(request: Request) -> HttpResponseBase:
    """A file to keep."""
    if wait := bounds.wait("export", str(request.user.pk), bounds.EXPORTS, bounds.HOUR):
        refusal = render(request, "429.html", status=429)
        refusal["Retry-After"] = str(wait)
        return refusal
    reply = StreamingHttpResponse(_pieces(request.user), content_type="application/json; charset=utf-8")
    reply["Content-Disposition"] = f'attachment; filename="berth-{timezone.now():%Y-%m-%d}.json"'
    return reply


async def _pieces(user: User) -> AsyncIterator[str]:
    """One object. A query for each piece, so that no client that reads slowly holds a transaction open."""
    yield f'{{"account": {_json({name: getattr(user, name) for name in ACCOUNT})},\n'
    limits = await _read(UserLimits.objects.filter(user=user).values(*LIMITS))
    yield f'"limits": {_json(limits[0] if limits else None)},\n"api_keys": ['
    separator = ""
    async for rows in _by_pk(ApiKey.objects.filter(owner=user).values(*KEY)):
        yield separator + ",\n".join(map(_json, rows))
        separator = ",\n"
    yield '],\n"chats": ['
    separator = ""
    async for chats in _by_pk(Chat.objects.filter(user=user).values(*CHAT)):
        for chat in chats:
            yield f"{separator}{_json(chat)[:-1]}, "
            separator = ",\n"
            shares = await _read(Share.objects.filter(chat=chat["id"]).order_by("pk").values(*SHARE))
            yield f'"shares": {_json(shares)}, "messages": ['
            between = "\n"
            async for messages in _by_pk(Message.objects.filter(chat=chat["id"]).values(*MESSAGE)):
                yield between + ",\n".join(map(_json, messages))
                between = ",\n"
            yield "]}"
    yield '],\n"generations": ['
    separator = ""
    async for rows in _by_time(Generation.objects.filter(user=user).values(*GENERATION)):
        yield separator + ",\n".join(map(_json, rows))
        separator = ",\n"
    yield "]}\n"


async def _by_pk(rows: QuerySet[Any, Row]) -> AsyncIterator[list[Row]]:
    rest = rows = rows.order_by("pk")
    while found := await _read(rest[:AT_ONCE]):
        yield found
        rest = rows.filter(pk__gt=found[-1]["id"])


async def _by_time(rows: QuerySet[Any, Row]) -> AsyncIterator[list[Row]]:
    """Newest first: a person's generations have an index by time."""
    rest = rows = rows.order_by("-created_at", "-pk")
    while found := await _read(rest[:AT_ONCE]):
        yield found
        at, pk = found[-1]["created_at"], found[-1]["id"]
        rest = rows.filter(Q(created_at__lt=at) | Q(pk__lt=pk), created_at__lte=at)


@sync_to_async
def _read(rows: QuerySet[Any, Row]) -> list[Row]:
    return list(rows)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, cls=DjangoJSONEncoder)
