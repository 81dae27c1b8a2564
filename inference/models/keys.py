"""API keys."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from inference.messages import NORMAL

from .bounds import AT_LEAST_ONE, PRIORITY_HELP, PRIORITY_RANGE
from .limits import UserLimits


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
    prefix = models.CharField(max_length=16, editable=False, help_text=_("The key's first characters."))
    hash = models.CharField(max_length=64, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="api_keys"
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True, help_text=_("Empty: it does not expire."))
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)
    notices = models.BooleanField(
        default=True,
        help_text=_("Streams carry comments about parks and waiting. Off for clients that reject comments."),
    )
    max_priority = models.SmallIntegerField(
        _("highest priority"),
        null=True,
        blank=True,
        validators=PRIORITY_RANGE,
        help_text=format_lazy(
            "{} {}", PRIORITY_HELP, _("Empty: its owner's; normal for a key without an owner.")
        ),
    )
    max_concurrent = models.PositiveIntegerField(
        _("generations at once"),
        null=True,
        blank=True,
        validators=AT_LEAST_ONE,
        help_text=_("Empty: the server's limit. Its owner's limit holds besides."),
    )
    max_output = models.PositiveIntegerField(
        _("tokens of an answer"),
        null=True,
        blank=True,
        validators=AT_LEAST_ONE,
        help_text=_("At most. Empty: the server's limit."),
    )

    objects: ClassVar[models.Manager[ApiKey]] = models.Manager.from_queryset(ApiKeyQuerySet)()

    class Meta:
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
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
