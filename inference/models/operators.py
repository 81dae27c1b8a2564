"""What people with staff rights did."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from .keys import ApiKey


class OperatorAction(models.Model):
    """What a person with staff rights did to somebody's generation, or to a worker. It outlives all the rows
    it names."""

    class Kind(models.TextChoices):
        PARK = "park", _("Park and hold")
        UNPARK = "unpark", _("Release")
        CANCEL = "cancel", _("Cancel")
        PRIORITISE = "prioritise", _("Change of priority")
        DRAIN = "drain", _("Drain")
        UNDRAIN = "undrain", _("End of draining")

    kind = models.CharField(_("action"), max_length=16, choices=Kind)
    by = models.CharField(
        max_length=200, blank=True, help_text=_("The user's or the key's name at that time.")
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    api_key = models.ForeignKey(
        ApiKey, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", verbose_name=_("API key")
    )
    # No foreign key: the generation's row can come later than this one.
    generation = models.UUIDField(null=True, editable=False)  # None: it was done to the worker
    slot = models.IntegerField(default=-1, help_text=_("-1: it had none."))
    worker = models.CharField(max_length=100)
    detail = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField(_("when"), default=timezone.now, editable=False)

    class Meta:
        ordering = ("-created_at", "-pk")
        indexes = (
            models.Index(fields=("-created_at",)),
            models.Index(fields=("kind", "-created_at")),
            models.Index(fields=("generation",)),
        )

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.generation.hex[:8] if self.generation else self.worker}"
