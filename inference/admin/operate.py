"""What an operator does to generations from their list or their page: cancel, park and hold, release."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from inference import by_hand
from inference.auth import Caller
from inference.broker.connect import AWAY
from inference.models import Generation
from inference.wire.errors import RequestError
from inference.wire.llamacpp import SlotAction

from .base import AnyAdmin

MOST = 100  # generations: a park waits for a step of the worker, and so does who asked
BACK = "_page"  # set by the buttons of a generation's own page

DONE = {
    "park": _("%s parked and held."),
    "unpark": _("%s released: it goes on when its turn comes."),
    "cancel": _("%s told to end."),
}
UNREACHABLE = _("The worker can't be reached. Try again in a moment.")


class Operable(AnyAdmin):
    """Actions for those who may change a generation's course, though nobody may change its row."""

    actions: Any = ("park", "unpark", "cancel")

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return by_hand.may_operate(request.user)

    @admin.action(description=_("Park and hold"), permissions=["operate"])
    def park(self, request: HttpRequest, queryset: QuerySet[Generation]) -> HttpResponse | None:
        return self._carry_out("park", request, queryset)

    @admin.action(description=_("Release"), permissions=["operate"])
    def unpark(self, request: HttpRequest, queryset: QuerySet[Generation]) -> HttpResponse | None:
        return self._carry_out("unpark", request, queryset)

    @admin.action(description=_("Cancel"), permissions=["operate"])
    def cancel(self, request: HttpRequest, queryset: QuerySet[Generation]) -> HttpResponse | None:
        if "confirmed" in request.POST:
            return self._carry_out("cancel", request, queryset)
        running = list(_running(queryset)[: MOST + 1])
        if not running or len(running) > MOST:
            return self._carry_out("cancel", request, queryset)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": gettext("Cancel?"),
            "generations": running,
            "checkbox": ACTION_CHECKBOX_NAME,
            "back": BACK if BACK in request.POST else "",
        }
        return TemplateResponse(request, "admin/inference/generation/cancel.html", context)

    def _carry_out(
        self, kind: str, request: HttpRequest, queryset: QuerySet[Generation]
    ) -> HttpResponse | None:
        running = list(_running(queryset)[: MOST + 1])
        if len(running) > MOST:
            self.message_user(
                request, gettext("Choose %(n)s at most: nothing was done.") % {"n": MOST}, messages.ERROR
            )
            return None
        n_over = queryset.filter(state__in=Generation.OVER)[: MOST + 1].count() if not running else 0
        if n_over:
            self.message_user(request, gettext("Nothing to do: what you chose has ended."), messages.WARNING)
        done, refused = self._each(kind, request, running)
        if done:
            named = ", ".join(str(one) for one in done)
            if len(done) > 3:
                named = gettext("%(n)s generations") % {"n": len(done)}
            self.message_user(request, DONE[kind] % named, messages.SUCCESS)
        for reason, n in refused.items():
            self.message_user(
                request,
                ngettext("%(reason)s", "%(n)s times: %(reason)s", n) % {"n": n, "reason": reason},
                messages.ERROR,
            )
        if BACK in request.POST and (chosen := request.POST.get(ACTION_CHECKBOX_NAME)):
            return HttpResponseRedirect(reverse("admin:inference_generation_change", args=[chosen]))
        return None

    def _each(
        self, kind: str, request: HttpRequest, running: list[Generation]
    ) -> tuple[list[Generation], Counter[str]]:
        """Those with which it was done, and why not with the others. Ends when no worker answers."""
        user = request.user
        assert isinstance(user, User)
        caller = Caller(user.get_username(), user_id=user.pk, is_staff=user.is_staff)
        done: list[Generation] = []
        refused: Counter[str] = Counter()
        for generation in running:
            try:
                if kind == "cancel":
                    by_hand.cancel(generation.id.hex, caller)
                else:
                    by_hand.act(SlotAction(kind, generation=generation.id.hex, worker=""), caller)
            except RequestError as error:
                refused[f"{generation}: {error.message}"] += 1
                if error.status == 503:
                    break
            except AWAY:
                refused[str(UNREACHABLE)] += 1
                break
            else:
                done.append(generation)
        return done, refused


def _running(queryset: QuerySet[Generation]) -> QuerySet[Generation]:
    return queryset.exclude(state__in=Generation.OVER)
