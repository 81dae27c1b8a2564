"""Rows that say who may be served have changed: streams are looked at now, and answers that nobody may read
any more are cancelled.

It only makes things quicker for streams, which `revocation` ends by itself. An answer of a chat that nobody
reads just then has no stream: it is cancelled here, where its person is deactivated or deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models.signals import post_delete, post_save, pre_delete
from django.dispatch import receiver

from inference.broker import bell, control
from inference.broker.connect import AWAY
from inference.models import ApiKey, Generation

logger = logging.getLogger(__name__)

UNDER_WAY = (Generation.State.QUEUED, Generation.State.RUNNING, Generation.State.PARKED)


def answers_of(user: User) -> list[str]:
    """The ids of those of this person's chats that are on the way. Who uses a key follows its own."""
    mine = Generation.objects.filter(user=user, state__in=UNDER_WAY, message__isnull=False).order_by()
    return [id.hex for id in mine.values_list("pk", flat=True)]


def _cancel(ids: Sequence[str]) -> None:
    try:
        for id in ids:
            control.cancel_sync(id)
    except AWAY as error:
        logger.error("%d answers that nobody may read go on: %s", len(ids), error)


@receiver(post_save, sender=User)
def _person_saved(instance: User, created: bool, update_fields: frozenset[str] | None, **_: Any) -> None:
    if created or update_fields == frozenset(("last_login",)):
        return
    transaction.on_commit(bell.ring)
    if not instance.is_active:
        ids = answers_of(instance)
        transaction.on_commit(lambda: _cancel(ids))


@receiver(pre_delete, sender=User)
def _person_goes(instance: User, **_: Any) -> None:
    ids = answers_of(instance)
    transaction.on_commit(lambda: _cancel(ids))


@receiver(post_save, sender=ApiKey)
def _key_saved(created: bool, **_: Any) -> None:
    if not created:
        transaction.on_commit(bell.ring)


@receiver(post_delete, sender=User)
@receiver(post_delete, sender=ApiKey)
@receiver(post_delete, sender=Session)
def _gone(**_: Any) -> None:
    transaction.on_commit(bell.ring)
