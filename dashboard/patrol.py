"""Looks after what nobody waits for: a lost answer is asked for again, and what can't be has failed.

Whoever waits for an answer finds out that it is lost (`lost.py`). For the others one web process
at a time, whichever comes first, looks once a minute for generations without an end of which neither the
queue nor a worker knows.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict

from django.utils import timezone

from inference import recorder
from inference.broker import admission, jobs, log, occupancy
from inference.broker.connect import sync_client
from inference.broker.keys import PATROL
from inference.messages import TERMINAL, Event, Failed
from inference.models import Generation
from inference.stream import LOST_AFTER

from . import background, conversation, feed

logger = logging.getLogger(__name__)

EVERY_S = 60
MOST_ROWS = 50_000  # without an end that are looked at, oldest first
MOST = 500  # that are mended at once
LOST = Failed(503, "server_error", conversation.LOST)

Missing = dict[Generation, Event | None]  # with the last event of its log


def start_thread() -> None:
    """It ends with the process."""
    threading.Thread(target=_run, name="patrol", daemon=True).start()


def _run() -> None:
    while True:
        time.sleep(EVERY_S)
        attempt()


def attempt(wait: Callable[[float], object] = time.sleep) -> None:
    """Look, unless somebody else has done so within a minute. Never raises."""
    with background.attempt(logger, "Answers that are lost are looked for later"):
        if sync_client().set(PATROL, "", nx=True, ex=EVERY_S):
            look(wait)


def look(wait: Callable[[float], object]) -> None:
    """Mend what nobody knows of, now and after some time. Raises RedisError, OSError or DatabaseError."""
    first = missing()
    if not first:
        return
    wait(LOST_AFTER)
    for generation, end in missing().items():
        if generation in first:
            _mend(generation, end)


def missing() -> Missing:
    """What has no end in its row and is neither in the queue nor at a worker; nothing while none lives."""
    unfinished = [state for state in Generation.State if state not in Generation.OVER]
    old = Generation.objects.filter(state__in=unfinished, created_at__lt=timezone.now() - conversation.YOUNG)
    pks = list(old.order_by("created_at").values_list("pk", flat=True)[:MOST_ROWS])
    workers = occupancy.overview_sync() if pks else None
    if workers is None or not workers.alive:
        return {}
    # A job leaves the queue once the log has its end, so that the log is asked last.
    lost = [pk for pk in pks if pk.hex not in workers.generations]
    waiting = jobs.waiting_sync([pk.hex for pk in lost])
    lost = [pk for pk in lost if pk.hex not in waiting][:MOST]
    ends = dict(zip(lost, log.ends_sync([pk.hex for pk in lost]), strict=True))
    rows = Generation.objects.filter(pk__in=lost).select_related("message__chat", "user")
    return {generation: ends[generation.pk] for generation in rows}


def _mend(generation: Generation, end: Event | None) -> None:
    id = generation.id.hex
    if end is None and conversation.can_be_asked_again(generation):
        if jobs.submit_again_sync(conversation.job(generation), {}):
            logger.warning("%s was lost and is asked for again", id)
        return
    if not isinstance(end, TERMINAL):
        logger.warning("%s was lost and has failed", id)
    failed = end if isinstance(end, TERMINAL) else LOST
    record = {"id": id, "kind": failed.kind, "worker": "", "at": time.time(), "data": asdict(failed)}
    recorder.write_batch([("", record)])  # with the text that its log has
    admission.release_sync(id)
    if generation.message and generation.user:
        feed.changed(generation.user, generation.message.chat)
