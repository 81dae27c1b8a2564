"""What people may ask for."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from inference.messages import NORMAL

from .bounds import AT_LEAST_ONE, PRIORITY_HELP, PRIORITY_RANGE


class UserLimits(models.Model):
    """What one person may ask for; who has no row has the defaults."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="limits")
    max_priority = models.SmallIntegerField(
        _("highest priority"), default=NORMAL, validators=PRIORITY_RANGE, help_text=PRIORITY_HELP
    )
    max_concurrent = models.PositiveIntegerField(
        _("generations at once"),
        null=True,
        blank=True,
        validators=AT_LEAST_ONE,
        help_text=_("In the browser and by all keys together. Empty: the server's limit."),
    )

    class Meta:
        verbose_name = verbose_name_plural = _("limits")

    def __str__(self) -> str:
        return gettext("Limits of %(user)s") % {"user": self.user}

    @staticmethod
    def ceiling(user: User) -> int:
        """The most urgent priority that this person may ask for."""
        limits: UserLimits | None = getattr(user, "limits", None)
        return limits.max_priority if limits else NORMAL

    @staticmethod
    def concurrent(user: User) -> int | None:
        """How many generations this person may have at once; None: as many as the server allows."""
        limits: UserLimits | None = getattr(user, "limits", None)
        return limits.max_concurrent if limits else None
