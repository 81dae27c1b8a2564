"""Parking a chat and holding it, and releasing it again, by hand of an operator. Each that is done leaves
an `OperatorAction` behind."""

from __future__ import annotations

import logging
import uuid
from typing import Any

from django.db import DatabaseError

from inference.auth import Caller
from inference.broker import control, occupancy
from inference.broker.control import Command
from inference.consumers import serving
from inference.models import OperatorAction
from inference.wire.errors import RequestError
from inference.wire.llamacpp import SlotAction

logger = logging.getLogger(__name__)


def act(action: SlotAction, caller: Caller) -> dict[str, Any]:
    """Have a worker do it: {"id_slot", "id", "worker", "is_held"}. Waits for its answer: for a thread.

    Raises RequestError with nothing changed (400, 403, 404, 409, and 503 without a worker), RedisError or
    OSError while Redis is away. A 503 of a worker that has not answered in time leaves the outcome open.
    """
    if not caller.is_staff:
        raise RequestError(403, "", "Only staff may park and unpark chats: use a key whose owner is staff.")
    worker = _worker(action)
    slot = "" if action.slot is None else str(action.slot)
    command = Command(action.kind, action.generation, worker=worker, slot=slot, reply=uuid.uuid4().hex)
    answer = control.ask_sync(command)
    if answer is None:
        message = "The worker has not answered in time. See what /slots says before you try again."
        raise RequestError(503, "", message)
    if "error" in answer:
        raise RequestError(answer["status"], "", answer["error"])
    _record(action.kind, caller, answer)
    return answer


def _worker(action: SlotAction) -> str:
    """The one that is meant. Slots are numbered by each worker for itself."""
    snapshots = occupancy.get_all_sync()
    serving(snapshots)
    ready: dict[str, dict[str, Any]] = {s["worker"]: s for s in snapshots if s["state"] == "ready"}
    if action.worker:
        if action.worker not in ready:
            raise RequestError(400, "", f'There is no worker "{action.worker}": there is {_listed(ready)}.')
        return action.worker
    if action.generation:
        for name, snapshot in ready.items():
            if any(
                one["generation"] == action.generation
                for part in ("slots", "parked", "queue")
                for one in snapshot[part]
            ):
                return name
    if len(ready) > 1:
        raise RequestError(400, "", f"There are several workers: name one with &worker=, {_listed(ready)}.")
    return next(iter(ready))


def _listed(workers: dict[str, Any]) -> str:
    return " or ".join(workers)


def _record(kind: str, caller: Caller, answer: dict[str, Any]) -> None:
    """The trace of what was done. It was done even if the database is away, so the log has it, too."""
    by = caller.name or "anybody at this machine"
    logger.info("%s by %s: generation %s, slot %d of worker %s", kind, by, answer["id"], answer["id_slot"],
                answer["worker"])  # fmt: skip
    try:
        OperatorAction.objects.create(
            kind=kind,
            by=by,
            user_id=caller.user_id,
            api_key_id=caller.key_id,
            generation=uuid.UUID(hex=answer["id"]),
            slot=answer["id_slot"],
            worker=answer["worker"],
        )
    except DatabaseError:
        logger.exception("The trace of this could not be written")
