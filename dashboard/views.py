"""The pages for people. A write answers in JSON, an error as {"error": "what to do"}."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from inference.auth import Caller
from inference.broker import people
from inference.broker.connect import AWAY
from inference.by_hand import Kind, act, may_operate
from inference.messages import HIGHEST, LOWEST
from inference.models import Chat
from inference.wire.errors import RequestError
from inference.wire.llamacpp import SlotAction

from . import chats
from .forms import TEXT_LIMIT, ByHandForm, ChatSettingsForm, PriorityForm, WorkerForm
from .replies import Request
from .replies import error as _error
from .thread import thread

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


@login_required
@never_cache
@require_safe
def chat(request: Request, pk: int | None = None) -> HttpResponse:
    """One's chats and one of them, or the place to start another."""
    changes = people.last_sync(request.user.pk)  # first: what changes from now on is told by the feed
    current = None if pk is None else get_object_or_404(Chat.objects.of(request.user), pk=pk)
    page = chats.page(request.user)
    context = {
        "section": "chat",
        "chats": page.chats,
        "more": page.more,
        "chat": current,
        "settings_form": ChatSettingsForm.of(current),
        "thread": thread(current) if current else [],
        "text_limit": TEXT_LIMIT,
        "changes": changes,
    }
    return render(request, "dashboard/chat.html", context)


@login_required
@require_safe
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
        return _error(gettext("This is for staff."), 403)
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
        ended = gettext("Nothing was done: it has ended.")
        return _error(ended if error.status == 404 else error.message, error.status)
    except AWAY:
        return _error(gettext("The worker can't be reached. Try again in a moment."), 503)
    return JsonResponse(done)
