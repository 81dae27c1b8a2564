"""What is purged: chats that were deleted a while ago. One thread a web process."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from inference.models import Chat

from . import background

logger = logging.getLogger(__name__)

KEPT = timedelta(days=7)  # in which a deletion can be taken back
BATCH = 20  # chats a transaction, so that others can write in between
EVERY_S = 600.0


def purge_some() -> int:
    """Remove for good some of the chats that have been deleted for long enough; how many there were."""
    with transaction.atomic():
        due = Chat.objects.filter(deleted_at__lt=timezone.now() - KEPT).order_by("deleted_at")
        pks = list(due.values_list("pk", flat=True)[:BATCH])
        Chat.objects.filter(pk__in=pks, deleted_at__isnull=False).delete()
    return len(pks)


def purge(wait: Callable[[float], object] = time.sleep) -> None:
    """Remove all that is due, with a little rest between batches. Raises DatabaseError."""
    while purge_some() == BATCH:
        wait(0.1)


def start_thread() -> None:
    """It ends with the process."""
    threading.Thread(target=_run, name="housekeeping", daemon=True).start()


def _run() -> None:
    while True:
        with background.attempt(logger, "Deleted chats are purged later"):
            purge()
        time.sleep(EVERY_S)
