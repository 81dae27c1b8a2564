"""People: Django's page of a user, with what that person may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from inference.models import UserLimits

if TYPE_CHECKING:
    UserAdminBase = UserAdmin[User]
    UserLimitsInlineBase = admin.StackedInline[UserLimits, User]
else:
    UserAdminBase, UserLimitsInlineBase = UserAdmin, admin.StackedInline


class UserLimitsInline(UserLimitsInlineBase):
    model = UserLimits
    fields = ("max_priority", "max_concurrent")
    can_delete = False


admin.site.unregister(User)


@admin.register(User)
class LimitedUserAdmin(UserAdminBase):
    """Django's, with what a person may ask for and the way to what that person asked for."""

    inlines = (UserLimitsInline,)
    readonly_fields = ("last_login", "date_joined", "generations")  # what happened is not edited

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        return [*fieldsets, (_("Generations"), {"fields": ("generations",)})] if obj else fieldsets

    @admin.display(description=_("Generations"))
    def generations(self, user: User) -> SafeString:
        url = f"{reverse('admin:inference_generation_changelist')}?user__id__exact={user.pk}"
        return format_html('<a href="{}">{}</a>', url, _("All of this person"))
