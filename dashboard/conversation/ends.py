"""How an answer ends: written down, found to be lost, stopped, failed; and whether it could go on."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import timedelta

from django.utils import timezone

from inference import recorder
from inference.broker import admission, control, jobs, log, occupancy
from inference.broker.connect import AWAY
from inference.messages import Failed, Finished
from inference.models import Generation

from .requests import job, longest

LOST = "it was lost when Redis was restarted"
YOUNG = timedelta(seconds=20)  # so old, what asks for it is in Redis or will never be
CONTEXT_SIZE = "context size"  # a part of what a worker says of a prompt that is too long


def settle(generation: Generation) -> None:
    """Write the end of a generation whose row lags behind, since a person can be faster than the recorder;
    mend one that is lost."""
    try:
        events = log.read_sync(generation.id.hex)
        if timezone.now() - generation.created_at > YOUNG and is_lost(generation):
            mend(generation)
    except AWAY:
        return
    if events and isinstance(last := events[-1][1], Finished | Failed):
        id = generation.id.hex
        record = {"id": id, "kind": last.kind, "worker": "", "at": time.time(), "data": asdict(last)}
        recorder.write_batch([("", record)])


def is_lost(generation: Generation) -> bool:
    """Whether there are workers and none of them has it or will: its web process died before it had asked
    for it, or Redis lost it. Raises RedisError or OSError while Redis is away."""
    id = generation.id.hex
    alive, known = occupancy.overview_sync()
    return alive and id not in known and not log.read_sync(id) and not jobs.waiting_sync([id])


def can_be_asked_again(generation: Generation) -> bool:
    """Whether rows say all that it takes, and nobody has heard anything of it."""
    message = generation.message
    is_there = message is not None and message.chat.deleted_at is None and generation.user is not None
    return is_there and generation.started_at is None


def mend(generation: Generation) -> bool:
    """Ask again for one that is lost; one that had begun has failed. Whether it is asked for again. Raises
    RedisError or OSError while Redis is away."""
    if generation.started_at is None:
        return jobs.submit_again_sync(job(generation), {})
    fail(generation, LOST)
    return False


def stop(generation: Generation) -> None:
    """End it, in whatever state it is. Raises RedisError or OSError while Redis is away."""
    id = generation.id.hex
    control.cancel_sync(id)
    if is_lost(generation) or not (log.read_sync(id) or occupancy.get_all_sync()):
        # no worker will tell that it has ended
        admission.release_sync(id)
        generation.state = Generation.State.CANCELLED
        generation.finish_reason = Generation.FinishReason.CANCELLED
        generation.finished_at = timezone.now()
        generation.save(update_fields=["state", "finish_reason", "finished_at"])


def fail(generation: Generation, error: str) -> None:
    generation.state, generation.error, generation.finished_at = (
        Generation.State.FAILED,
        error,
        timezone.now(),
    )
    generation.save(update_fields=["state", "error", "finished_at"])


def is_at_limit(generation: Generation) -> bool:
    """Whether it has written as many tokens as it might. Else what cut it off is that the context is full."""
    return generation.completion_tokens == (generation.max_tokens or longest())


def is_unfinished(generation: Generation) -> bool:
    """Whether it has ended, but not because the model was done, and the model could go on."""
    if generation.state == Generation.State.FAILED:
        return CONTEXT_SIZE not in generation.error
    if generation.state == Generation.State.FINISHED:
        cut_off = generation.finish_reason == Generation.FinishReason.LENGTH and is_at_limit(generation)
        return cut_off or generation.finish_reason == Generation.FinishReason.CANCELLED
    return generation.state == Generation.State.CANCELLED
