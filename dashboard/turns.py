"""What a person does with the turns of a chat: sends, stops, regenerates, edits, continues, and pages through
versions. Each answers in JSON, an error as {"error": "what to do"}."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from inference.broker.connect import AWAY
from inference.models import Chat, Generation, Message

from . import conversation, feed
from .forms import ChatSettingsForm, MessageForm, SendForm
from .replies import Request, error, refusal
from .thread import thread


def _asks(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A write by which an answer is asked for, which says why there can't be one."""

    @login_required
    @require_POST
    @wraps(view)
    def asking(request: Request, pk: int = 0) -> HttpResponse:
        try:
            return view(request, pk) if pk else view(request)
        except conversation.Busy:
            return error(_("This chat is still being answered. Stop it, or wait until it is done."), 409)
        except Chat.DoesNotExist:  # deleted in another tab just now
            raise Http404 from None
        except conversation.NotPossible as not_possible:
            return error(str(not_possible), 409)
        except conversation.Refused as refused:
            kept = " " + _("Your text is still here.") if "text" in request.POST else ""
            return error(refused.message + kept, refused.status)

    return asking


@_asks
def create(request: Request) -> HttpResponse:
    """Start a chat with its first message."""
    form, settings = MessageForm(request.POST), ChatSettingsForm(request.POST)
    if not form.is_valid():
        return refusal(form)
    if not settings.is_valid():
        return refusal(settings)
    text = form.cleaned_data["text"]
    chat = Chat(user=request.user, title=Chat.title_for(text), **settings.cleaned_data)
    conversation.send(chat, request.user, text)
    feed.changed(request.user, chat)
    return JsonResponse({"url": reverse("chat", args=[chat.pk])}, status=201)


@_asks
def send(request: Request, pk: int) -> HttpResponse:
    """Add a message to a chat: `text`, and `after` which message, else at its end."""
    chat = get_object_or_404(Chat.objects.of(request.user), pk=pk)
    form = SendForm(request.POST)
    if not form.is_valid():
        return refusal(form)
    text, after = form.cleaned_data["text"], form.cleaned_data["after"]
    before = get_object_or_404(chat.messages, pk=after) if after else None
    return _answer(request, chat, conversation.send(chat, request.user, text, before))


@_asks
def edit(request: Request, pk: int) -> HttpResponse:
    """Make another version of one's message: `text`."""
    question = _message(request, pk, Message.Role.USER)
    form = MessageForm(request.POST)
    if not form.is_valid():
        return refusal(form)
    chat, text = question.chat, form.cleaned_data["text"]
    return _answer(request, chat, conversation.edit(chat, request.user, question, text))


@_asks
def regenerate(request: Request, pk: int) -> HttpResponse:
    """Have another version of an answer written."""
    answer = _message(request, pk, Message.Role.ASSISTANT)
    return _answer(request, answer.chat, conversation.regenerate(answer.chat, request.user, answer))


@_asks
def go_on(request: Request, pk: int) -> HttpResponse:
    """Have more written of an answer that is unfinished."""
    answer = _message(request, pk, Message.Role.ASSISTANT)
    return _answer(request, answer.chat, conversation.go_on(answer.chat, request.user, answer))


@login_required
@require_POST
def show(request: Request, pk: int) -> HttpResponse:
    """Read on with this version of a message."""
    message = get_object_or_404(_messages(request), pk=pk)
    conversation.show(message.chat, message)
    return _answer(request, message.chat, [message], status=200)


@login_required
@require_POST
def stop(request: Request, pk: UUID) -> HttpResponse:
    """End a generation; what is written of it stays. Its stream tells when it has ended."""
    mine = Message.objects.filter(chat__in=Chat.objects.of(request.user))
    generation = get_object_or_404(Generation.objects.select_related("message"), pk=pk, message__in=mine)
    if not generation.is_over:
        try:
            conversation.stop(generation)
        except AWAY:
            return error(_("The model can't be reached. Try again in a moment."), 503)
        if generation.message:
            feed.changed(request.user, generation.message.chat_id)
    return JsonResponse({}, status=202)


def _messages(request: Request) -> QuerySet[Message]:
    """Of this person's chats."""
    return Message.objects.select_related("chat").filter(chat__in=Chat.objects.of(request.user))


def _message(request: Request, pk: int, role: Message.Role) -> Message:
    return get_object_or_404(_messages(request), pk=pk, role=role)


def _answer(request: Request, chat: Chat, changed: list[Message], status: int = 201) -> HttpResponse:
    """Tell the person's other pages, and reply with the markup of what was changed and all that follows it:
    {"after": the message before it or None, "html"}. What a page shows behind `after` makes way for it."""
    feed.changed(request.user, chat)
    first = changed[0]
    turns = thread(chat)
    new = turns[next(at for at, turn in enumerate(turns) if turn.pk == first.pk) :]
    html = "".join(render_to_string("dashboard/message.html", {"message": turn}, request) for turn in new)
    return JsonResponse({"after": first.parent_id, "html": html}, status=status)
