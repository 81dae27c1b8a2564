"""Search over one's chats: titles and messages, the chats that were used last first."""

from __future__ import annotations

import re
import time
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from inference.models import Chat, Message

from .replies import Request, error

LEAST, LONGEST = 2, 200  # characters of a term
MOST = 50  # hits of one answer
OF_A_CHAT = 3  # hits in the messages of one chat, so that no chat hides the others
MOST_CHATS = 2**31 - 1  # of one person; a database can't go on from a number without end
BATCH = 250  # chats whose messages are looked through by one query
ENOUGH_S = 0.5  # after which an answer is given with what was found, and where to go on
AROUND = 70  # characters shown before and after a hit

Hit = dict[str, Any]


@login_required
@require_safe
def search(request: Request) -> HttpResponse:
    """{"hits", "more"}: what holds `q`; and for the `after` of the next request, "" when that is all."""
    term = request.GET.get("q", "").replace("\0", "").strip()
    if len(term) < LEAST:
        return error(_("Type two characters or more."), 400)
    try:
        after = int(request.GET.get("after") or 0)
    except ValueError:
        return error(_("Search again."), 400)
    after = min(max(after, 0), MOST_CHATS)
    hits, more = find(Chat.objects.of(request.user).values_list("pk", "title"), term[:LONGEST], after)
    return JsonResponse({"hits": hits, "more": more})


def find(chats: Any, term: str, after: int = 0) -> tuple[list[Hit], str]:
    """Hits in these chats, (pk, title) in their order, from number `after` on: MOST of them, or what could be
    found in ENOUGH_S; and the number of the chat to go on from, "" after the last."""
    hits: list[Hit] = []
    deadline = time.monotonic() + ENOUGH_S
    while batch := list(chats[after : after + BATCH]):
        found = _in_messages([pk for pk, _ in batch], term)
        for pk, title in batch:
            if len(hits) >= MOST:
                return hits, str(after)
            name, url = title or str(Chat(pk=pk)), reverse("chat", args=[pk])
            of_title = _place(title, term)
            of_messages = found.get(pk, [])[: MOST - len(hits) - bool(of_title)]
            if of_title:
                hits.append({"chat": name, "title": of_title, "url": url})
            for message in of_messages:
                snippet = _snippet(message.content, term)
                anchor = f"{url}#message-{message.pk}"
                hits.append({"chat": name, "text": snippet, "url": anchor, "role": message.role})
            after += 1
        if len(batch) < BATCH:
            break
        if len(hits) >= MOST or time.monotonic() > deadline:
            return hits, str(after)
    return hits, ""


def _in_messages(chats: list[int], term: str) -> dict[int, list[Message]]:
    """By chat: the newest of the messages that hold it."""
    found: dict[int, list[int]] = {}
    rows = Message.objects.filter(_holds(term), chat__in=chats).order_by("-pk").values_list("chat_id", "pk")
    for chat, pk in rows:
        of_chat = found.setdefault(chat, [])
        if len(of_chat) < OF_A_CHAT:
            of_chat.append(pk)
    # Texts are read for as many as can be shown.
    wanted = [pk for chat in chats for pk in found.get(chat, ())][:MOST]
    messages: dict[int, list[Message]] = {}
    for message in Message.objects.filter(pk__in=wanted).order_by("-pk"):
        messages.setdefault(message.chat_id, []).append(message)
    return messages


def _holds(term: str) -> Q:
    """SQLite knows capital letters of ASCII alone, so it is asked for the usual spellings too."""
    spellings = {term} if term.isascii() else {term, term.lower(), term.upper(), term.capitalize()}
    found = Q()
    for spelling in spellings:
        found |= Q(content__icontains=spelling)
    return found


def _place(text: str, term: str) -> tuple[str, str, str] | None:
    """What comes before a term, the term as it stands there, and what comes after; None where it is not."""
    found = re.search(re.escape(term), text, re.IGNORECASE)
    return (text[: found.start()], found[0], text[found.end() :]) if found else None


def _snippet(text: str, term: str) -> tuple[str, str, str]:
    """The surroundings of a hit on one line."""
    before, hit, after = _place(text, term) or ("", "", text)
    begin = before[-AROUND:] if len(before) <= AROUND else "…" + before[-AROUND:].partition(" ")[2]
    end = after if len(after) <= AROUND else after[:AROUND].rpartition(" ")[0] + "…"
    return _line(begin), _line(hit), _line(end)


def _line(text: str) -> str:
    """With each run of white space as one space."""
    flat = " ".join(text.split())
    return f"{' ' * text[:1].isspace()}{flat}{' ' * text[-1:].isspace()}" if flat else " " * bool(text)
