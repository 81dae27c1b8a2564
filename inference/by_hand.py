"""Parking a chat and holding it, releasing it again, and ending it, by hand of an operator. Each that is
done leaves an `OperatorAction` behind."""

from __future__ import annotations

import logging
import uuid
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db import DatabaseError

from inference.auth import Caller
from inference.broker import control, occupancy
from inference.broker.control import Command
from inference.consumers import serving
from inference.models import OperatorAction
from inference.wire.errors import RequestError
from inference.wire.llamacpp import SlotAction

logger = logging.getLogger(__name__)

PERMISSION = "inference.change_generation"  # without it, staff may look and not act


def may_operate(user: User | AnonymousUser) -> bool:
    """Whether a person may park, release and end what belongs to others."""
    return user.is_active and user.is_staff and user.has_perm(PERMISSION)


def act(action: SlotAction, caller: Caller) -> dict[str, Any]:
    """Have a worker do it: {"id_slot", "id", "worker", "is_held"}. Waits for its answer: for a thread.

    Raises RequestError with nothing changed (400, 403, 404, 409, and 503 without a worker), RedisError or
    OSError while Redis is away. A 503 of a worker that has not answered in time leaves the outcome open.
    """
    _check(caller)
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


def cancel(id: str, caller: Caller) -> None:
    """Have a generation end, in whatever state it is; its stream tells when it has.

    Raises RequestError (403), RedisError or OSError while Redis is away.
    """
    _check(caller)
    slot, worker = _place(id)
    control.cancel_sync(id)
    _record("cancel", caller, {"id": id, "id_slot": slot, "worker": worker})


def _check(caller: Caller) -> None:
    if not caller.is_staff:
        raise RequestError(403, "", "Only staff may park and unpark chats: use a key whose owner is staff.")
    if caller.user_id is not None and not may_operate(User.objects.get(pk=caller.user_id)):
        message = "This account may look at other people's chats, and not act on them."
        raise RequestError(403, "", f"{message} The permission to change generations lets it.")


def _place(id: str) -> tuple[int, str]:
    """The slot and the worker that have a generation; -1 and "" where none has."""
    for snapshot in occupancy.get_all_sync():
        for one in snapshot["slots"]:
            if one["generation"] == id:
                return one["id"], snapshot["worker"]
        for one in snapshot["parked"]:
            if one["generation"] == id:
                return one["slot"], snapshot["worker"]
        if any(one["generation"] == id for one in snapshot["queue"]):
            return -1, snapshot["worker"]
    return -1, ""


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
