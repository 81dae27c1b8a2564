"""API keys. Only a key's hash is stored, so it is shown once, when it is made."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.widgets import AdminSplitDateTime
from django.db.models import Field, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import add_never_cache_headers
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from inference.messages import priority_name
from inference.models import ApiKey

from .base import LargeTable, badge, moment


@admin.register(ApiKey)
class ApiKeyAdmin(LargeTable):
    list_display = (
        "name",
        "prefix",
        "state_badge",
        "owner",
        "notices",
        "highest_priority",
        "created",
        "last_used",
        "expires",
    )
    list_filter = (("revoked_at", admin.EmptyFieldListFilter), "notices")
    list_select_related = ("owner__limits",)
    search_fields = ("name", "prefix", "owner__username")
    search_help_text = _("A key's name or first characters, or its owner's name")
    date_hierarchy = "created_at"
    editable = ("name", "owner", "expires_at", "notices", "max_priority", "max_concurrent", "max_output")
    readonly_fields = ("prefix", "created_at", "last_used_at", "revoked_at", "generations")
    fields = (*editable, *readonly_fields)
    autocomplete_fields = ("owner",)
    actions = ("revoke",)
    sortable_by: ClassVar[Any] = ("name", "created", "last_used", "expires")

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> tuple[str, ...]:
        return self.fields if obj else self.editable

    def formfield_for_dbfield(self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any) -> Any:
        """The two inputs of a moment have a name each: Django's label belongs to neither."""
        field: Any = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None and isinstance(field.widget, AdminSplitDateTime):
            day, time = field.widget.widgets
            name = {"field": capfirst(field.label)}
            day.attrs["aria-label"] = gettext("%(field)s: day") % name
            time.attrs["aria-label"] = gettext("%(field)s: time") % name
        return field

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
            "title": _("The new API key"),
            "key": obj,
            "plain": obj.plain,  # type: ignore[attr-defined]
        }
        reply = TemplateResponse(request, "admin/inference/apikey/created.html", context)
        add_never_cache_headers(reply)
        return reply

    @admin.display(description=_("created at"), ordering="created_at")
    def created(self, key: ApiKey) -> SafeString | str:
        return moment(key.created_at)

    @admin.display(description=_("last used at"), ordering="last_used_at")
    def last_used(self, key: ApiKey) -> SafeString | str:
        return moment(key.last_used_at)

    @admin.display(description=_("expires at"), ordering="expires_at")
    def expires(self, key: ApiKey) -> SafeString | str:
        return moment(key.expires_at)

    @admin.display(description=_("State"))
    def state_badge(self, key: ApiKey) -> SafeString:
        if key.revoked_at:
            return badge("failed", gettext("Revoked"))
        if key.is_expired:
            return badge("cancelled", gettext("Expired"))
        return (
            badge("running", gettext("Usable"))
            if key.is_usable
            else badge("cancelled", gettext("Owner inactive"))
        )

    @admin.display(description=_("Generations"))
    def generations(self, key: ApiKey) -> SafeString:
        url = f"{reverse('admin:inference_generation_changelist')}?api_key={key.pk}"
        return format_html('<a href="{}">{}</a>', url, _("All of this key"))

    @admin.display(description=_("Highest priority"))
    def highest_priority(self, key: ApiKey) -> str:
        return gettext(priority_name(key.ceiling))

    @admin.action(description=_("Revoke the selected API keys"), permissions=["change"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> None:
        keys = list(queryset.filter(revoked_at=None))
        for key in keys:
            key.revoked_at = timezone.now()
            key.save(update_fields=["revoked_at"])
            self.log_change(request, key, "Revoked.")
        self.message_user(
            request,
            gettext("%(n)s revoked.") % {"n": len(keys)},
            messages.SUCCESS if keys else messages.WARNING,
        )
