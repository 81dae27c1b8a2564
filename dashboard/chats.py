"""One's chats: the list in pages, and what is done with one of them as a whole."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from inference.broker.connect import AWAY
from inference.models import Chat, Generation

from . import conversation, feed
from .forms import ChatSettingsForm, TitleForm
from .replies import Request, error, refusal

PAGE = 50  # chats that are listed at once
EPOCH = datetime.fromtimestamp(0, UTC)


class Page(NamedTuple):
    """A part of somebody's list, newest first. `more` is where the next begins; "" after the last.

    In the first part, older chats that are being answered come before all others, so that each is seen.
    """

    chats: list[Chat]
    more: str


def page(user: User, after: str = "") -> Page:
    """The chats after a `more`, or the first ones. Raises ValueError for what is none."""
    chats = Chat.objects.of(user).only("pk", "title", "updated_at")
    if after:
        at, pk = _place(after)
        chats = chats.filter(Q(updated_at=at, pk__lt=pk) | Q(updated_at__lt=at))
    found = list(chats[: PAGE + 1])
    more = ""
    if len(found) > PAGE:
        found.pop()
        more = f"{(found[-1].updated_at - EPOCH) // timedelta(microseconds=1)}.{found[-1].pk}"
        if not after:
            answered = chats.filter(pk__in=feed.under_way(user.pk).values("message__chat"))
            found[:0] = answered.exclude(pk__in=[chat.pk for chat in found])
    return Page(found, more)


def _place(more: str) -> tuple[datetime, int]:
    at, pk = map(int, more.split("."))
    try:
        return EPOCH + timedelta(microseconds=at), pk
    except OverflowError:
        raise ValueError(more) from None


@login_required
@require_safe
def more(request: Request) -> HttpResponse:
    """The next page of the list, as markup."""
    try:
        chats, more = page(request.user, request.GET.get("after", ""))
    except ValueError:
        return error(_("Reload the page to see more chats."), 400)
    html = "".join(render_to_string("dashboard/chat_item.html", {"item": chat}) for chat in chats)
    return JsonResponse({"html": html, "more": more})


@login_required
@require_POST
def rename(request: Request, pk: int) -> HttpResponse:
    chat = get_object_or_404(Chat.objects.of(request.user), pk=pk)
    form = TitleForm(request.POST)
    if not form.is_valid():
        return refusal(form)
    chat.title, chat.titled_by = form.cleaned_data["title"], Chat.TitledBy.PERSON
    chat.save(update_fields=["title", "titled_by"])
    feed.changed(request.user, chat)
    return JsonResponse({"title": chat.title})


@login_required
def settings(request: Request, pk: int) -> HttpResponse:
    """What a chat is answered with: read, or changed from the next answer on."""
    chat = get_object_or_404(Chat.objects.of(request.user), pk=pk)
    if request.method == "POST":
        form = ChatSettingsForm(request.POST)
        if not form.is_valid():
            return refusal(form)
        for name, value in form.cleaned_data.items():
            setattr(chat, name, value)
        chat.save(update_fields=list(form.cleaned_data))
        feed.changed(request.user, chat)
    elif request.method not in ("GET", "HEAD"):
        return HttpResponse(status=405, headers={"Allow": "GET, HEAD, POST"})
    return JsonResponse({name: getattr(chat, name) for name in ChatSettingsForm.base_fields})


@login_required
@require_POST
def check_settings(request: Request) -> HttpResponse:
    """Those of a chat that is not begun, as they will be kept; nothing is kept yet."""
    form = ChatSettingsForm(request.POST)
    return JsonResponse(form.cleaned_data) if form.is_valid() else refusal(form)


@login_required
@require_POST
def delete(request: Request, pk: int) -> HttpResponse:
    """Gone from everywhere at once, and can be had back until it is purged. Its answer ends."""
    chat = get_object_or_404(Chat.objects.of(request.user), pk=pk)
    _set_deleted(chat, timezone.now())  # first, so that no other answer begins
    try:
        for generation in Generation.objects.filter(message__chat=chat).exclude(state__in=Generation.OVER):
            conversation.stop(generation)
    except AWAY:
        _set_deleted(chat, None)
        return error(_("The answer on its way can't be stopped just now. Try again in a moment."), 503)
    feed.changed(request.user, chat)
    return JsonResponse({"title": str(chat)})


@login_required
@require_POST
def restore(request: Request, pk: int) -> HttpResponse:
    """Take back a deletion."""
    chat = get_object_or_404(Chat, pk=pk, user=request.user)
    _set_deleted(chat, None)
    feed.changed(request.user, chat)
    html = render_to_string("dashboard/chat_item.html", {"item": chat})
    return JsonResponse({"html": html, "url": reverse("chat", args=[chat.pk])})


def _set_deleted(chat: Chat, at: datetime | None) -> None:
    """Without a change of `updated_at`, so that it keeps its place in the list."""
    Chat.objects.filter(pk=chat.pk).update(deleted_at=at)
