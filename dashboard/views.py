"""The pages for people. A write answers in JSON, an error as {"error": "what to do"}."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import Prefetch, prefetch_related_objects
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from inference.auth import Caller
from inference.broker.connect import AWAY
from inference.by_hand import Kind, act, may_operate
from inference.messages import HIGHEST, LOWEST
from inference.models import Chat, Generation, Message
from inference.wire.errors import RequestError
from inference.wire.llamacpp import SlotAction

from . import chats, conversation, wording
from .forms import TEXT_LIMIT, ByHandForm, ChatSettingsForm, MessageForm, PriorityForm, WorkerForm
from .replies import Request, refusal
from .replies import error as _error

BUSY = "This chat is still being answered. Stop it, or wait until it is done."
SAY_WHICH = {
    WorkerForm: "Say which worker.",
    ByHandForm: "Say which chat: its worker and its generation.",
    PriorityForm: f"Say which chat, and a priority from {HIGHEST} to {LOWEST}.",
}
FORMS: dict[str, type[WorkerForm]] = {  # what each action must be told
    Kind.PARK: ByHandForm,
    Kind.UNPARK: ByHandForm,
    Kind.CANCEL: ByHandForm,
    Kind.PRIORITISE: PriorityForm,
    Kind.DRAIN: WorkerForm,
    Kind.UNDRAIN: WorkerForm,
}


def _thread(chat: Chat) -> list[Message]:
    """Its messages with what the page shows of their last generations: `generation`, `pending`, `note`
    and `look`."""
    messages = chat.path()
    prefetch_related_objects(messages, Prefetch("generations", Generation.objects.order_by("created_at")))
    return [_dressed(message) for message in messages]


def _dressed(message: Message) -> Message:
    generation = next(reversed(message.generations.all()), None)
    message.generation = generation  # type: ignore[attr-defined]
    message.pending = generation is not None and not generation.is_over  # type: ignore[attr-defined]
    message.note = wording.note(generation) if generation is not None else ""  # type: ignore[attr-defined]
    message.look = generation.state if generation is not None else ""  # type: ignore[attr-defined]
    return message


@login_required
@require_GET
def chat(request: Request, pk: int | None = None) -> HttpResponse:
    """One's chats and one of them, or the place to start another."""
    current = None if pk is None else get_object_or_404(Chat.objects.of(request.user), pk=pk)
    page = chats.page(request.user)
    context = {
        "section": "chat",
        "chats": page.chats,
        "more": page.more,
        "chat": current,
        "settings_form": ChatSettingsForm.of(current),
        "thread": _thread(current) if current else [],
        "text_limit": TEXT_LIMIT,
    }
    return render(request, "dashboard/chat.html", context)


@login_required
@require_POST
def create(request: Request) -> HttpResponse:
    """Start a chat with its first message."""
    form = MessageForm(request.POST)
    if not form.is_valid():
        return _error(str(form.errors["text"][0]), 400)
    settings_form = ChatSettingsForm(request.POST)
    if not settings_form.is_valid():
        return refusal(settings_form)
    text = form.cleaned_data["text"]
    chat = Chat(user=request.user, title=Chat.title_for(text), **settings_form.cleaned_data)
    try:
        conversation.begin(chat, request.user, text)
    except conversation.Refused as refused:
        return _error(refused.message, refused.status)
    return JsonResponse({"url": reverse("chat", args=[chat.pk])}, status=201)


@login_required
@require_POST
def send(request: Request, pk: int) -> HttpResponse:
    """Add a message to a chat: the markup of the two new turns."""
    chat = get_object_or_404(Chat.objects.of(request.user), pk=pk)
    form = MessageForm(request.POST)
    if not form.is_valid():
        return _error(str(form.errors["text"][0]), 400)
    try:
        messages = conversation.begin(chat, request.user, form.cleaned_data["text"])
    except conversation.Busy:
        return _error(BUSY, 409)
    except conversation.Refused as refused:
        return _error(refused.message, refused.status)
    turns = [render_to_string("dashboard/message.html", {"message": _dressed(m)}) for m in messages]
    return JsonResponse({"html": "".join(turns)}, status=201)


@login_required
@require_POST
def stop(request: Request, pk: UUID) -> HttpResponse:
    """End a generation; what is written of it stays. Its stream tells when it has ended."""
    generation = get_object_or_404(Generation, pk=pk, message__chat__in=Chat.objects.of(request.user))
    if not generation.is_over:
        try:
            conversation.stop(generation)
        except AWAY:
            return _error("The model can't be reached. Try again in a moment.", 503)
    return JsonResponse({}, status=202)


@login_required
@require_GET
def monitor(request: Request) -> HttpResponse:
    if not request.user.is_staff:
        raise PermissionDenied
    context = {"section": "monitor", "may_operate": may_operate(request.user)}
    return render(request, "dashboard/monitor.html", context)


@login_required
@require_POST
def by_hand(request: Request, kind: str) -> HttpResponse:
    """Do something with a chat or a worker: `worker`, `generation` of the live picture, and `priority`."""
    user = request.user
    if not user.is_staff:
        return _error("This is for staff.", 403)
    form = FORMS[kind](request.POST)
    if not form.is_valid():
        return _error(SAY_WHICH[FORMS[kind]], 400)
    found = form.cleaned_data
    generation = found["generation"].hex if "generation" in found else ""
    priority = found.get("priority", 0)
    action = SlotAction(kind, generation=generation, worker=found["worker"], priority=priority)
    try:
        done = act(action, Caller(user.get_username(), user_id=user.pk, is_staff=True))
    except RequestError as error:
        return _error(error.message, error.status)
    except AWAY:
        return _error("The worker can't be reached. Try again in a moment.", 503)
    return JsonResponse(done)
