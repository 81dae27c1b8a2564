"""The rows, for operators. What the recorder writes is shown and never edited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.html import format_html
from django.utils.safestring import SafeString

from .messages import NORMAL, priority_name
from .models import ApiKey, Chat, Generation, Message, OperatorAction, Preemption, UserLimits

if TYPE_CHECKING:
    ChatBase = admin.ModelAdmin[Chat]
    MessageBase = admin.ModelAdmin[Message]
    GenerationBase = admin.ModelAdmin[Generation]
    PreemptionBase = admin.ModelAdmin[Preemption]
    ApiKeyBase = admin.ModelAdmin[ApiKey]
    OperatorActionBase = admin.ModelAdmin[OperatorAction]
    PreemptionInlineBase = admin.TabularInline[Preemption, Generation]
    UserAdminBase = UserAdmin[User]
    UserLimitsInlineBase = admin.TabularInline[UserLimits, User]
else:
    ChatBase = MessageBase = GenerationBase = PreemptionBase = ApiKeyBase = admin.ModelAdmin
    OperatorActionBase, UserAdminBase = admin.ModelAdmin, UserAdmin
    PreemptionInlineBase = UserLimitsInlineBase = admin.TabularInline


class ReadOnly:
    """Rows that tell what happened: editing one would lie."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


# A number beside the three that have a word is filed with those of its side.
RANGES: dict[str, dict[str, int]] = {
    "high": {"priority__lt": NORMAL},
    "normal": {"priority": NORMAL},
    "low": {"priority__gt": NORMAL},
}


def seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} s"


def badge(state: str, label: str) -> SafeString:
    return format_html('<span class="berth-badge berth-{}">{}</span>', state, label)


@admin.register(Chat)
class ChatAdmin(ChatBase):
    list_display = ("__str__", "user", "turns", "created_at", "updated_at")
    list_select_related = ("user",)
    search_fields = ("title", "user__username")
    search_help_text = "A title or a user's name"
    date_hierarchy = "created_at"
    readonly_fields = ("created_at", "updated_at")
    autocomplete_fields = ("user",)
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Chat]:
        turns = Message.objects.filter(chat=OuterRef("pk")).order_by().values("chat").annotate(n=Count("pk"))
        return super().get_queryset(request).annotate(n_turns=Coalesce(Subquery(turns.values("n")), 0))

    @admin.display(description="Messages")
    def turns(self, chat: Any) -> SafeString:
        url = f"{reverse('admin:inference_message_changelist')}?chat__id__exact={chat.pk}"
        return format_html('<a href="{}">{}</a>', url, chat.n_turns)


@admin.register(Message)
class MessageAdmin(ReadOnly, MessageBase):
    list_display = ("pk", "chat", "user", "role", "created_at")
    list_select_related = ("chat__user",)
    list_filter = ("role",)
    search_fields = ("chat__title", "chat__user__username")
    search_help_text = "A chat's title or a user's name"
    date_hierarchy = "created_at"
    show_full_result_count = False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup == "chat__id__exact" or super().lookup_allowed(lookup, value, request)

    @admin.display(ordering="chat__user")
    def user(self, message: Message) -> str:
        return message.chat.user.get_username()


class PreemptionInline(ReadOnly, PreemptionInlineBase):
    model = Preemption
    fields = ("parked_at", "cause", "kind", "slot", "cells", "bytes", "resumed_at", "waited")
    readonly_fields = ("waited",)
    ordering = ("parked_at",)
    extra = 0
    can_delete = False

    @admin.display(description="Waited")
    def waited(self, park: Preemption) -> str:
        return seconds(park.waited_s)


class PriorityFilter(admin.SimpleListFilter):
    title = "priority"
    parameter_name = "priority"

    def lookups(self, request: HttpRequest, model_admin: admin.ModelAdmin[Any]) -> list[tuple[str, str]]:
        return [(name, name.capitalize()) for name in RANGES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        found = RANGES.get(self.value() or "")
        return queryset.filter(**found) if found else queryset


@admin.register(Generation)
class GenerationAdmin(ReadOnly, GenerationBase):
    list_display = (
        "short_id",
        "state_badge",
        "api",
        "model",
        "asked_by",
        "prompt",
        "completion",
        "urgency",
        "parks",
        "time_parked",
        "first_token",
        "finish",
        "created_at",
    )
    list_filter = ("state", "api", "model", PriorityFilter, "finish_reason", "stream")
    list_select_related = ("user", "api_key")
    search_fields = ("id__startswith", "user__username", "api_key__name", "api_key__prefix")
    search_help_text = "The beginning of an id, a user's name, or an API key's name or first characters"
    date_hierarchy = "created_at"
    inlines = (PreemptionInline,)
    show_full_result_count = False

    class Media:
        css = {"all": ("dashboard/admin.css",)}

    @admin.display(description="Id", ordering="id")
    def short_id(self, generation: Generation) -> str:
        return generation.id.hex[:8]

    @admin.display(description="State", ordering="state")
    def state_badge(self, generation: Generation) -> SafeString:
        return badge(generation.state, generation.get_state_display())

    @admin.display(description="Asked by")
    def asked_by(self, generation: Generation) -> str:
        return str(generation.user or generation.api_key or "–")

    @admin.display(description="Prompt", ordering="prompt_tokens", empty_value="–")
    def prompt(self, generation: Generation) -> int | None:
        return generation.prompt_tokens

    @admin.display(description="Answer", ordering="completion_tokens", empty_value="–")
    def completion(self, generation: Generation) -> int | None:
        return generation.completion_tokens

    @admin.display(description="Priority", ordering="priority")
    def urgency(self, generation: Generation) -> str:
        return priority_name(generation.priority)

    @admin.display(description="Parked for", ordering="parked_s")
    def time_parked(self, generation: Generation) -> str:
        return seconds(generation.parked_s) if generation.parks else "–"

    @admin.display(description="First token", ordering="ttft_s")
    def first_token(self, generation: Generation) -> str:
        return seconds(generation.ttft_s)

    @admin.display(description="Finish", ordering="finish_reason", empty_value="–")
    def finish(self, generation: Generation) -> str:
        return generation.get_finish_reason_display()


@admin.register(Preemption)
class PreemptionAdmin(ReadOnly, PreemptionBase):
    list_display = (
        "parked_at",
        "generation",
        "cause",
        "kind",
        "slot",
        "cells",
        "ram",
        "resumed_at",
        "waited",
    )
    list_filter = ("cause", "kind", ("resumed_at", admin.EmptyFieldListFilter))
    list_select_related = ("generation",)
    search_fields = ("generation__id__startswith",)
    search_help_text = "The beginning of a generation's id"
    date_hierarchy = "parked_at"
    show_full_result_count = False

    @admin.display(description="Host RAM", ordering="bytes")
    def ram(self, park: Preemption) -> str:
        return f"{park.bytes / 2**20:.1f} MiB"

    @admin.display(description="Waited", ordering="waited_s")
    def waited(self, park: Preemption) -> str:
        return seconds(park.waited_s)


@admin.register(ApiKey)
class ApiKeyAdmin(ApiKeyBase):
    list_display = (
        "name",
        "prefix",
        "state_badge",
        "owner",
        "notices",
        "highest_priority",
        "created_at",
        "last_used_at",
        "expires_at",
    )
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), "notices")
    list_select_related = ("owner__limits",)
    search_fields = ("name", "prefix", "owner__username")
    search_help_text = "A key's name or first characters, or its owner's name"
    date_hierarchy = "created_at"
    editable = ("name", "owner", "expires_at", "notices", "max_priority", "max_concurrent", "max_output")
    fields = (*editable, "prefix", "created_at", "last_used_at", "revoked_at")
    readonly_fields = ("prefix", "created_at", "last_used_at", "revoked_at")
    autocomplete_fields = ("owner",)
    actions = ("revoke",)
    show_full_result_count = False

    class Media:
        css = {"all": ("dashboard/admin.css",)}

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> tuple[str, ...]:
        return self.fields if obj else self.editable

    def save_model(self, request: HttpRequest, obj: ApiKey, form: ModelForm[ApiKey], change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            return
        obj.plain = obj.generate()  # type: ignore[attr-defined]
        super().save_model(request, obj, form, change)

    def response_add(
        self, request: HttpRequest, obj: ApiKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        """The one place where the key can be read: this answer itself. A notice on the page after a redirect
        would be kept in a cookie or a session until then."""
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": "The new API key",
            "key": obj,
            "plain": obj.plain,  # type: ignore[attr-defined]
        }
        reply = TemplateResponse(request, "admin/inference/apikey/created.html", context)
        add_never_cache_headers(reply)
        return reply

    @admin.display(description="State")
    def state_badge(self, key: ApiKey) -> SafeString:
        if key.revoked_at:
            return badge("failed", "Revoked")
        if key.is_expired:
            return badge("cancelled", "Expired")
        return badge("running", "Usable") if key.is_usable else badge("cancelled", "Owner inactive")

    @admin.display(description="Highest priority")
    def highest_priority(self, key: ApiKey) -> str:
        return priority_name(key.ceiling)

    @admin.action(description="Revoke the selected API keys", permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        keys = list(queryset.filter(revoked_at=None))
        for key in keys:
            key.revoked_at = timezone.now()
            key.save(update_fields=["revoked_at"])
            self.log_change(request, key, "Revoked.")
        self.message_user(request, f"{len(keys)} revoked.", messages.SUCCESS if keys else messages.WARNING)


@admin.register(OperatorAction)
class OperatorActionAdmin(ReadOnly, OperatorActionBase):
    list_display = ("created_at", "kind", "by", "chat", "slot", "worker")
    list_filter = ("kind",)
    search_fields = ("by", "generation__startswith")
    search_help_text = "The name of who did it, or the beginning of a generation's id"
    date_hierarchy = "created_at"
    readonly_fields = ("generation",)
    show_full_result_count = False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description="Generation", ordering="generation")
    def chat(self, action: OperatorAction) -> SafeString:
        url = reverse("admin:inference_generation_change", args=[action.generation])
        return format_html('<a href="{}">{}</a>', url, action.generation.hex[:8])


class UserLimitsInline(UserLimitsInlineBase):
    model = UserLimits
    fields = ("max_priority", "max_concurrent")
    can_delete = False


admin.site.unregister(User)


@admin.register(User)
class LimitedUserAdmin(UserAdminBase):
    """Django's, with what a person may ask for."""

    inlines = (UserLimitsInline,)
