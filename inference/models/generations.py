"""Requests and their parks."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from inference.messages import NORMAL

from .bounds import PRIORITY_HELP
from .chats import Message
from .keys import ApiKey


class Generation(models.Model):
    """One request and how it went. `id.hex` is its id in Redis."""

    class State(models.TextChoices):
        QUEUED = "queued", _("Queued")
        RUNNING = "running", _("Running")
        PARKED = "parked", _("Parked")
        FINISHED = "finished", _("Finished")
        CANCELLED = "cancelled", _("Cancelled")
        FAILED = "failed", _("Failed")

    class FinishReason(models.TextChoices):
        STOP = "stop", _("Stop")
        LENGTH = "length", _("Length")
        CANCELLED = "cancelled", _("Cancelled")

    OVER = (State.FINISHED, State.CANCELLED, State.FAILED)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    api = models.CharField(_("API"), max_length=40, blank=True, help_text=_("The endpoint it came by."))
    model = models.CharField(max_length=200, blank=True)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="generations"
    )
    api_key = models.ForeignKey(
        ApiKey,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="generations",
        verbose_name=_("API key"),
    )
    message = models.ForeignKey(
        Message,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="generations",
        help_text=_("The assistant's message that it writes."),
    )
    goes_on_from = models.PositiveIntegerField(
        default=0,
        editable=False,
        help_text=_("So many characters of the message were there before it."),
    )
    max_tokens = models.PositiveIntegerField(
        null=True, editable=False, help_text="As many as it may write. Empty: not known, or without a bound."
    )
    stream = models.BooleanField(default=False)
    priority = models.SmallIntegerField(default=NORMAL, help_text=PRIORITY_HELP)
    prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    cached_tokens = models.PositiveIntegerField(
        _("prompt tokens from the cache"),
        null=True,
        blank=True,
        help_text=_("They were kept from an earlier prompt, and not computed again."),
    )
    completion_tokens = models.PositiveIntegerField(null=True, blank=True)
    parks = models.PositiveIntegerField(default=0)
    parked_s = models.FloatField(_("time parked (s)"), default=0.0)
    # Of its last park, so that a list of millions can be filtered by them.
    park_cause = models.CharField(_("cause of the last park"), max_length=16, blank=True)
    park_kind = models.CharField(_("kind of the last park"), max_length=16, blank=True)
    ttft_s = models.FloatField(_("time to first token (s)"), null=True, blank=True)
    finish_reason = models.CharField(max_length=16, choices=FinishReason, blank=True)
    error = models.TextField(blank=True)
    worker = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    accepted_at = models.DateTimeField(null=True, blank=True, help_text=_("By a worker, which then counts."))
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at", "-pk")
        indexes = (
            # As a list is ordered, to the last term: else SQLite may sort the whole table.
            models.Index(fields=("-created_at", "-id")),
            models.Index(fields=("state", "-created_at")),
            models.Index(fields=("user", "-created_at")),
            models.Index(fields=("api_key", "-created_at")),
            models.Index(fields=("api", "-created_at")),
            models.Index(fields=("model", "-created_at")),
            models.Index(fields=("priority", "-created_at")),
            models.Index(fields=("finish_reason", "-created_at")),
            models.Index(fields=("worker", "-created_at")),
            models.Index(fields=("park_cause", "-created_at")),
            models.Index(fields=("park_kind", "-created_at")),
        )

    def __str__(self) -> str:
        return gettext("Generation %(id)s") % {"id": self.id.hex[:8]}

    @property
    def is_over(self) -> bool:
        """Nothing more will come of it."""
        return self.state in self.OVER


class Preemption(models.Model):
    """One park of a generation, and its resume if there was one."""

    class Cause(models.TextChoices):
        PRESSURE = "pressure", _("Pressure")
        ADMISSION = "admission", _("Admission")
        FORCED = "forced", _("Forced")
        DECODE = "decode", _("Decode")
        HAND = "hand", _("Hand")
        ROTATION = "rotation", _("Rotation")
        PRIORITY = "priority", _("Priority")
        WORKER = "worker", _("Worker")
        CLIENT = "client", _("Client")

    class Kind(models.TextChoices):
        SWAP = "swap", _("Swap")
        RECOMPUTE = "recompute", _("Recompute")

    generation = models.ForeignKey(Generation, on_delete=models.CASCADE, related_name="preemptions")
    slot = models.IntegerField(default=-1, help_text=_("-1: it had none yet."))
    cause = models.CharField(max_length=16, choices=Cause, blank=True)
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.SWAP)
    cells = models.PositiveIntegerField(default=0)
    bytes = models.PositiveBigIntegerField(_("host RAM (bytes)"), default=0)
    parked_at = models.DateTimeField()
    resumed_at = models.DateTimeField(null=True, blank=True)
    waited_s = models.FloatField(_("waited (s)"), null=True, blank=True)

    class Meta:
        verbose_name = _("park")
        ordering = ("-parked_at", "-pk")
        indexes = (
            models.Index(fields=("-parked_at", "-id")),
            models.Index(fields=("cause", "-parked_at")),
            models.Index(fields=("kind", "-parked_at")),
            models.Index(
                fields=("-parked_at", "-id"), condition=models.Q(resumed_at=None), name="not_resumed"
            ),
        )
        constraints = (
            # A park is known by its time, so that a record which comes twice makes one row.
            models.UniqueConstraint(fields=("generation", "parked_at"), name="one_row_a_park"),
        )

    def __str__(self) -> str:
        return f"Park of {self.generation_id.hex[:8]} at {self.parked_at:%Y-%m-%d %H:%M:%S}"
