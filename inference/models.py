"""What is kept: chats and their messages, generations and their parks, and API keys.

Only web processes read and write these. A generation's row follows its events by way of the recorder,
so it can lag a moment behind the stream; the live state is in `broker.occupancy`.
"""

from __future__ import annotations

import hashlib
import secrets
import uuid
from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import User
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.text import Truncator

from inference.messages import HIGHEST, LOWEST, NORMAL

TITLE_LENGTH = 60  # characters of a title made from a message


class Chat(models.Model):
    """One person's conversation."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="chats")
    title = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-updated_at", "-pk")
        indexes = (
            models.Index(fields=("user", "-updated_at")),
            models.Index(fields=("-updated_at", "-id")),
            models.Index(fields=("-created_at",)),
        )

    def __str__(self) -> str:
        return self.title or f"Chat {self.pk}"

    @staticmethod
    def title_for(text: str) -> str:
        """A title made of the first words of `text`, on one line."""
        return Truncator(" ".join(text.split())).chars(TITLE_LENGTH)

    def history(self) -> list[dict[str, str]]:
        """The conversation as the model reads it, oldest first, without answers that have no text yet."""
        turns = self.messages.exclude(content="").order_by("pk").values_list("role", "content")
        return [{"role": role, "content": content} for role, content in turns]


class Message(models.Model):
    """One turn of a chat. The assistant's is created empty with its generation; the recorder fills it."""

    class Role(models.TextChoices):
        SYSTEM = "system"
        USER = "user"
        ASSISTANT = "assistant"

    chat = models.ForeignKey(Chat, on_delete=models.CASCADE, related_name="messages")
    role = models.CharField(max_length=16, choices=Role)
    content = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("pk",)
        indexes = (models.Index(fields=("-created_at", "-id")),)

    def __str__(self) -> str:
        return f"{self.get_role_display()} message {self.pk}"


PRIORITY_RANGE = (MinValueValidator(HIGHEST), MaxValueValidator(LOWEST))
PRIORITY_HELP = "The lower number goes first: -1 is high, 0 normal, 1 low."
AT_LEAST_ONE = (MinValueValidator(1),)


class UserLimits(models.Model):
    """What one person may ask for; who has no row has the defaults."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="limits")
    max_priority = models.SmallIntegerField(
        "highest priority", default=NORMAL, validators=PRIORITY_RANGE, help_text=PRIORITY_HELP
    )
    max_concurrent = models.PositiveIntegerField(
        "generations at once",
        null=True,
        blank=True,
        validators=AT_LEAST_ONE,
        help_text="In the browser and by all keys together. Empty: the server's limit.",
    )

    class Meta:
        verbose_name = verbose_name_plural = "limits"

    def __str__(self) -> str:
        return f"Limits of {self.user}"

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


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def usable(self) -> ApiKeyQuerySet:
        """Those neither revoked nor expired, and whose owner, if there is one, is active."""
        in_time = models.Q(expires_at=None) | models.Q(expires_at__gt=timezone.now())
        owned = models.Q(owner=None) | models.Q(owner__is_active=True)
        return self.filter(in_time, owned, revoked_at=None)

    def with_key(self, plain: str) -> ApiKeyQuerySet:
        """The row of this key, if there is one: `usable().with_key(plain).first()`."""
        return self.filter(hash=ApiKey.hash_of(plain))

    def create_key(
        self,
        name: str,
        owner: User | None = None,
        *,
        expires_at: datetime | None = None,
        max_priority: int | None = None,
        max_concurrent: int | None = None,
        max_output: int | None = None,
    ) -> tuple[ApiKey, str]:
        """A new key: its row, and the key itself, which is stored nowhere."""
        row = ApiKey(
            name=name,
            owner=owner,
            expires_at=expires_at,
            max_priority=max_priority,
            max_concurrent=max_concurrent,
            max_output=max_output,
        )
        plain = row.generate()
        row.save(force_insert=True, using=self.db)
        return row, plain


class ApiKey(models.Model):
    """A program's key. It carries 256 random bits, so a bare hash is safe and can be looked up."""

    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, editable=False, help_text="The key's first characters.")
    hash = models.CharField(max_length=64, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="api_keys"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Empty: it does not expire.")
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    notices = models.BooleanField(
        default=True,
        help_text="Streams carry comments about parks and waiting. Off for clients that reject comments.",
    )
    max_priority = models.SmallIntegerField(
        "highest priority",
        null=True,
        blank=True,
        validators=PRIORITY_RANGE,
        help_text=f"{PRIORITY_HELP} Empty: its owner's; normal for a key without an owner.",
    )
    max_concurrent = models.PositiveIntegerField(
        "generations at once",
        null=True,
        blank=True,
        validators=AT_LEAST_ONE,
        help_text="Empty: the server's limit. Its owner's limit holds besides.",
    )
    max_output = models.PositiveIntegerField(
        "tokens of an answer",
        null=True,
        blank=True,
        validators=AT_LEAST_ONE,
        help_text="At most. Empty: the server's limit.",
    )

    objects: ClassVar[models.Manager[ApiKey]] = models.Manager.from_queryset(ApiKeyQuerySet)()

    class Meta:
        verbose_name = "API key"
        verbose_name_plural = "API keys"
        ordering = ("-created_at", "-pk")
        indexes = (models.Index(fields=("-created_at",)),)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @staticmethod
    def hash_of(plain: str) -> str:
        """64 hex digits by which a key is found."""
        return hashlib.sha256(plain.encode()).hexdigest()

    def generate(self) -> str:
        """Give this row a fresh key and return it; only its hash and its first characters stay."""
        plain = f"sk-berth-{secrets.token_urlsafe(32)}"
        self.prefix, self.hash = plain[:13], self.hash_of(plain)
        return plain

    @property
    def ceiling(self) -> int:
        """The most urgent priority that its requests may ask for."""
        if self.max_priority is not None:
            return self.max_priority
        return UserLimits.ceiling(self.owner) if self.owner else NORMAL

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()

    @property
    def is_usable(self) -> bool:
        """As `usable()` finds it."""
        return (
            self.revoked_at is None and not self.is_expired and (self.owner is None or self.owner.is_active)
        )


class Generation(models.Model):
    """One request and how it went. `id.hex` is its id in Redis."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        PARKED = "parked"
        FINISHED = "finished"
        CANCELLED = "cancelled"
        FAILED = "failed"

    class FinishReason(models.TextChoices):
        STOP = "stop"
        LENGTH = "length"
        CANCELLED = "cancelled"

    OVER = (State.FINISHED, State.CANCELLED, State.FAILED)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    api = models.CharField("API", max_length=40, blank=True, help_text="The endpoint it came by.")
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
        verbose_name="API key",
    )
    message = models.OneToOneField(
        Message,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="generation",
        help_text="The assistant's message that it writes.",
    )
    stream = models.BooleanField(default=False)
    priority = models.SmallIntegerField(default=NORMAL, help_text=PRIORITY_HELP)
    prompt_tokens = models.PositiveIntegerField(null=True, blank=True)
    completion_tokens = models.PositiveIntegerField(null=True, blank=True)
    parks = models.PositiveIntegerField(default=0)
    parked_s = models.FloatField("time parked (s)", default=0.0)
    # Of its last park, so that a list of millions can be filtered by them.
    park_cause = models.CharField("cause of the last park", max_length=16, blank=True)
    park_kind = models.CharField("kind of the last park", max_length=16, blank=True)
    ttft_s = models.FloatField("time to first token (s)", null=True, blank=True)
    finish_reason = models.CharField(max_length=16, choices=FinishReason, blank=True)
    error = models.TextField(blank=True)
    worker = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    accepted_at = models.DateTimeField(null=True, blank=True, help_text="By a worker, which then counts.")
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
        return f"Generation {self.id.hex[:8]}"

    @property
    def is_over(self) -> bool:
        """Nothing more will come of it."""
        return self.state in self.OVER


class Preemption(models.Model):
    """One park of a generation, and its resume if there was one."""

    class Cause(models.TextChoices):
        PRESSURE = "pressure"
        ADMISSION = "admission"
        FORCED = "forced"
        DECODE = "decode"
        HAND = "hand"
        ROTATION = "rotation"
        PRIORITY = "priority"
        WORKER = "worker"
        CLIENT = "client"

    class Kind(models.TextChoices):
        SWAP = "swap"
        RECOMPUTE = "recompute"

    generation = models.ForeignKey(Generation, on_delete=models.CASCADE, related_name="preemptions")
    slot = models.IntegerField(default=-1, help_text="-1: it had none yet.")
    cause = models.CharField(max_length=16, choices=Cause, blank=True)
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.SWAP)
    cells = models.PositiveIntegerField(default=0)
    bytes = models.PositiveBigIntegerField("host RAM (bytes)", default=0)
    parked_at = models.DateTimeField()
    resumed_at = models.DateTimeField(null=True, blank=True)
    waited_s = models.FloatField("waited (s)", null=True, blank=True)

    class Meta:
        verbose_name = "park"
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


class OperatorAction(models.Model):
    """What a person with staff rights did to somebody's generation, or to a worker. It outlives all the rows
    it names."""

    class Kind(models.TextChoices):
        PARK = "park", "Park and hold"
        UNPARK = "unpark", "Release"
        CANCEL = "cancel", "Cancel"
        PRIORITISE = "prioritise", "Change of priority"
        DRAIN = "drain", "Drain"
        UNDRAIN = "undrain", "End of draining"

    kind = models.CharField("action", max_length=16, choices=Kind)
    by = models.CharField(max_length=200, blank=True, help_text="The user's or the key's name at that time.")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    api_key = models.ForeignKey(
        ApiKey, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", verbose_name="API key"
    )
    # No foreign key: the generation's row can come later than this one.
    generation = models.UUIDField(null=True, editable=False)  # None: it was done to the worker
    slot = models.IntegerField(default=-1, help_text="-1: it had none.")
    worker = models.CharField(max_length=100)
    detail = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField("when", default=timezone.now, editable=False)

    class Meta:
        ordering = ("-created_at", "-pk")
        indexes = (
            models.Index(fields=("-created_at",)),
            models.Index(fields=("kind", "-created_at")),
            models.Index(fields=("generation",)),
        )

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.generation.hex[:8] if self.generation else self.worker}"
