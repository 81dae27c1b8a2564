"""A chat as a file: what is read of it as Markdown, all of it as JSON."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Prefetch
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from inference.models import Chat, Generation, Message

from .forms import ChatSettingsForm
from .replies import Request

LONGEST_NAME = 200  # bytes; most file systems take 255, with what a browser adds


@login_required
@require_safe
def markdown(request: Request, pk: int) -> HttpResponse:
    """The path that is read."""
    chat = get_object_or_404(Chat.objects.of(request.user), pk=pk)
    names = {
        Message.Role.USER: _("You"),
        Message.Role.ASSISTANT: _("Answer"),
        Message.Role.SYSTEM: _("System prompt"),
    }
    parts = [f"# {chat}"]
    if chat.system_prompt:
        parts.append(f"## {names[Message.Role.SYSTEM]}\n\n{chat.system_prompt}")
    parts += [f"## {names[Message.Role(m.role)]}\n\n{m.content}" for m in chat.path()]
    return _file("\n\n".join(part.rstrip() for part in parts) + "\n", "text/markdown", f"{_name(chat)}.md")


@login_required
@require_safe
def as_json(request: Request, pk: int) -> HttpResponse:
    """The whole tree, with settings, versions and times."""
    chat = get_object_or_404(Chat.objects.of(request.user), pk=pk)
    text = json.dumps(whole(chat), ensure_ascii=False, indent=2) + "\n"
    return _file(text, "application/json", f"{_name(chat)}.json")


def whole(chat: Chat) -> dict[str, Any]:
    """All that is kept of a chat: plain data. `reads` are the ids of the path that is read; messages with the
    same `parent` are versions of one another."""
    answers = Prefetch("generations", Generation.objects.order_by("created_at"))
    return {
        "title": str(chat),
        "created_at": _time(chat.created_at),
        "updated_at": _time(chat.updated_at),
        "settings": {name: getattr(chat, name) for name in ChatSettingsForm.base_fields},
        "reads": [message.pk for message in chat.path()],
        "messages": [_message(message) for message in chat.messages.prefetch_related(answers)],
    }


def _message(message: Message) -> dict[str, Any]:
    return {
        "id": message.pk,
        "parent": message.parent_id,
        "role": message.role,
        "content": message.content,
        "created_at": _time(message.created_at),
        "generations": [
            {
                "id": str(generation.pk),
                "model": generation.model,
                "state": generation.state,
                "finish_reason": generation.finish_reason,
                "error": generation.error,
                "prompt_tokens": generation.prompt_tokens,
                "completion_tokens": generation.completion_tokens,
                "goes_on_from": generation.goes_on_from,
                "created_at": _time(generation.created_at),
                "started_at": _time(generation.started_at),
                "finished_at": _time(generation.finished_at),
            }
            for generation in message.generations.all()
        ],
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _name(chat: Chat) -> str:
    """A title as a file's name, on any system."""
    name = re.sub(r'[\\/:*?"<>|\x00-\x1f\x7f]+', " ", str(chat))[:100].encode()[:LONGEST_NAME]
    return name.decode(errors="ignore").strip(" .") or f"chat {chat.pk}"


def _file(text: str, kind: str, name: str) -> HttpResponse:
    disposition = content_disposition_header(True, name)
    assert disposition
    headers = {"Content-Disposition": disposition, "Cache-Control": "private, no-store"}
    return HttpResponse(text, content_type=f"{kind}; charset=utf-8", headers=headers)
