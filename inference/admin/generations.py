"""Generations: what was asked for, what became of it, and its whole life on one page."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.functional import lazy
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from inference.messages import NORMAL, priority_name
from inference.models import Generation, OperatorAction

from . import search
from .base import ReadOnly, badge, link_to, moment
from .export import CsvExport
from .filters import ApiFilter, CauseFilter, KeyFilter, KindFilter, ModelFilter, PriorityFilter, WorkerFilter
from .live import states
from .operate import BACK, Operable
from .timeline import life_of
from .units import lasted


def _search_help() -> str:
    return gettext(
        "The beginning of an id (four digits at least), a person's name, or an API key's name or first "
        "characters: the newest %(n)s of each"
    ) % {"n": number_format(search.NEWEST, force_grouping=True)}


@admin.register(Generation)
class GenerationAdmin(ReadOnly, Operable, CsvExport):
    list_display = (
        "short_id",
        "state_and_end",
        "asked_by",
        "asked_of",
        "tokens",
        "parked",
        "first_token",
        "created",
    )
    list_filter = (
        "state",
        WorkerFilter,
        ModelFilter,
        ApiFilter,
        PriorityFilter,
        CauseFilter,
        KindFilter,
        "finish_reason",
        KeyFilter,
    )
    list_select_related = ("user", "api_key")
    search_fields = ("id",)
    search_help_text = lazy(_search_help, str)()
    date_hierarchy = "created_at"
    fieldsets = (
        (None, {"fields": ("state_badge", "asked_by_link", "key_link", "chat_link", "worker_link", "error")}),
        (
            _("Request"),
            {
                "fields": (
                    "api",
                    "model",
                    "stream",
                    "urgency",
                    "prompt_tokens",
                    "cached_tokens",
                    "completion_tokens",
                    "finish",
                )
            },
        ),
        (
            _("Times"),
            {"fields": ("created_at", "started_at", "first_token", "finished_at", "parked")},
        ),
    )
    csv_columns = (
        "id",
        "state",
        "api",
        "model",
        "worker",
        "user__username",
        "api_key__name",
        "stream",
        "priority",
        "prompt_tokens",
        "cached_tokens",
        "completion_tokens",
        "parks",
        "parked_s",
        "park_cause",
        "park_kind",
        "ttft_s",
        "finish_reason",
        "error",
        "created_at",
        "started_at",
        "finished_at",
    )

    # --- the list ---------------------------------------------------------------------------------

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Generation], search_term: str
    ) -> tuple[QuerySet[Generation], bool]:
        term = search_term.strip()
        return (search.generations(queryset, term) if term else queryset), False

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.states)
        return [path("states/", view, name="inference_generation_states"), *super().get_urls()]

    def states(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        return states(request)

    @admin.display(description=_("Id"))
    def short_id(self, generation: Generation) -> str:
        return generation.id.hex[:8]

    @admin.display(description=_("State"))
    def state_badge(self, generation: Generation) -> SafeString:
        if generation.is_over:
            return badge(generation.state, generation.get_state_display())
        # The page's script keeps it as it is now.
        return format_html(
            '<span class="berth-badge berth-{}" data-generation="{}">{}</span>',
            generation.state,
            generation.id.hex,
            generation.get_state_display(),
        )

    @admin.display(description=_("State"))
    def state_and_end(self, generation: Generation) -> SafeString:
        """How a finished one ended, too: of the others the state tells that."""
        shown = self.state_badge(generation)
        if generation.state != Generation.State.FINISHED or not generation.finish_reason:
            return shown
        return format_html('{} <span class="quiet">{}</span>', shown, generation.get_finish_reason_display())

    @admin.display(description=_("Asked by"))
    def asked_by(self, generation: Generation) -> SafeString:
        """With its priority where that is not the usual one."""
        who = str(generation.user or generation.api_key or "–")
        shown = format_html('<span class="berth-cut" title="{0}">{0}</span>', who)
        if generation.priority == NORMAL:
            return shown
        return format_html('{} <span class="berth-badge">{}</span>', shown, self.urgency(generation))

    @admin.display(description=_("Model and API"))
    def asked_of(self, generation: Generation) -> SafeString:
        return format_html(
            '<span class="berth-cut" title="{0}">{0}</span><span class="berth-under">{1}</span>',
            generation.model or "–",
            generation.api,
        )

    @admin.display(description=_("Tokens"))
    def tokens(self, generation: Generation) -> str:
        """Of the prompt, and of the answer when that is known."""
        known = (generation.prompt_tokens, generation.completion_tokens)
        if known == (None, None):
            return "–"
        return " → ".join("–" if n is None else number_format(n, force_grouping=True) for n in known)

    @admin.display(description=_("Priority"))
    def urgency(self, generation: Generation) -> str:
        return gettext(priority_name(generation.priority))

    @admin.display(description=_("Parked"))
    def parked(self, generation: Generation) -> str:
        """How often, and for how long in all."""
        if not generation.parks:
            return "–"
        if not generation.parked_s:  # it is in its first park
            return str(generation.parks)
        text = gettext("%(n)s in %(time)s") % {"n": generation.parks, "time": lasted(generation.parked_s)}
        return text.replace(" ", "\u00a0")

    @admin.display(description=_("First token"))
    def first_token(self, generation: Generation) -> str:
        return lasted(generation.ttft_s)

    @admin.display(description=_("created at"))
    def created(self, generation: Generation) -> SafeString | str:
        return moment(generation.created_at)

    @admin.display(description=_("Finish"))
    def finish(self, generation: Generation) -> str:
        return generation.get_finish_reason_display() or "–"

    # --- a generation's own page ------------------------------------------------------------------

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        generation = context["original"]
        parks = list(generation.preemptions.order_by("parked_at"))
        acts = OperatorAction.objects.filter(generation=generation.pk).order_by("created_at")
        context |= {
            "life": life_of(generation, parks, timezone.now()),
            "acts": acts if request.user.has_perm("inference.view_operatoraction") else [],
            "may_operate": not generation.is_over and self.has_operate_permission(request),
            "checkbox": ACTION_CHECKBOX_NAME,
            "back": BACK,
            "subtitle": None,
            "title": str(generation),
        }
        return super().render_change_form(request, context, *args, **kwargs)

    @admin.display(description=_("Person"))
    def asked_by_link(self, generation: Generation) -> SafeString | str:
        return self._with_all("user__id__exact", generation.user_id, link_to(generation.user))

    @admin.display(description=_("API key"))
    def key_link(self, generation: Generation) -> SafeString | str:
        return self._with_all("api_key", generation.api_key_id, link_to(generation.api_key))

    @admin.display(description=_("Chat"))
    def chat_link(self, generation: Generation) -> SafeString | str:
        chat = generation.message and generation.message.chat
        return (
            link_to(chat, gettext("Chat %(pk)s") % {"pk": chat.pk}) if chat else "–"
        )  # its title is its owner's own words

    @admin.display(description=_("Worker"))
    def worker_link(self, generation: Generation) -> SafeString | str:
        return self._with_all("worker", generation.worker, generation.worker or "–")

    def _with_all(self, parameter: str, value: Any, text: SafeString | str) -> SafeString | str:
        """`text`, and the way to all generations that have this in common."""
        if not value:
            return text
        url = reverse("admin:inference_generation_changelist")
        return format_html(
            '{} · <a href="{}?{}">{}</a>', text, url, urlencode({parameter: value}), _("all generations")
        )
