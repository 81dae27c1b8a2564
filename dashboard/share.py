"""Links by which anybody may read one chat: made and taken back by its owner, and the page that they open."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from inference.models import Chat, Generation, Share

from .replies import Request, error

MOST = 20  # links to one chat at once
PRIVATE = {  # whoever has the link reads; nobody else is told of it, and it is kept nowhere
    "Cache-Control": "private, no-store",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
}


def usable() -> Any:
    """Links that open: not taken back, of a chat that is not deleted and a person who may sign in."""
    return Share.objects.filter(revoked_at=None, chat__deleted_at=None, chat__user__is_active=True)


@login_required
def shares(request: Request, pk: int) -> HttpResponse:
    """The links to a chat, or one more: to what is read of it now."""
    if request.method == "POST":
        with transaction.atomic():  # under the lock that whoever asks for an answer takes
            chat = get_object_or_404(Chat.objects.of(request.user).select_for_update(), pk=pk)
            if why_not := _why_not(chat):
                return error(why_not, 409)
            assert chat.leaf
            chat.shares.create(leaf=chat.leaf)
    elif request.method in ("GET", "HEAD"):
        chat = get_object_or_404(Chat.objects.of(request.user), pk=pk)
    else:
        return HttpResponse(status=405, headers={"Allow": "GET, HEAD, POST"})
    return _links(request, chat)


@login_required
@require_POST
def revoke(request: Request, pk: int) -> HttpResponse:
    """Take a link back: it opens nothing any more."""
    share = get_object_or_404(Share, pk=pk, chat__in=Chat.objects.of(request.user))
    Share.objects.filter(pk=share.pk, revoked_at=None).update(revoked_at=timezone.now())
    return _links(request, share.chat)


def _why_not(chat: Chat) -> str:
    """What stands in the way of one more link; "" for nothing."""
    if chat.leaf_id is None:
        return _("There is nothing to share yet.")
    if Generation.objects.filter(message=chat.leaf_id).exclude(state__in=Generation.OVER).exists():
        return _("The answer is still being written. Stop it, or wait until it is done.")
    if chat.shares.filter(revoked_at=None).count() >= MOST:
        return _("This chat has many links already. Take one back first.")
    return ""


def _links(request: Request, chat: Chat) -> HttpResponse:
    found = [
        {
            "url": request.build_absolute_uri(reverse("shared", args=[share.token])),
            "created_at": share.created_at.isoformat(),
            "revoke": reverse("revoke", args=[share.pk]),
        }
        for share in chat.shares.filter(revoked_at=None)
    ]
    return JsonResponse({"links": found}, headers={"Cache-Control": "private, no-store"})


@require_safe
def shared(request: HttpRequest, token: str) -> HttpResponse:
    """The chat as it was when the link was made, for whoever has it. Nobody's name, and no way in."""
    share = get_object_or_404(usable().select_related("chat"), token=token)
    chat = share.chat
    chat.leaf_id = share.leaf_id  # of this copy alone
    messages = [message for message in chat.path() if message.content]
    context = {"chat": chat, "thread": messages, "share": share}
    reply = render(request, "dashboard/shared.html", context)
    for name, value in PRIVATE.items():
        reply[name] = value
    return reply
