"""What an operator does with a chat or with a worker. Each that is done leaves an `OperatorAction` behind."""

from __future__ import annotations

import logging
import uuid
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db import DatabaseError

from inference.auth import Caller
from inference.broker import control, occupancy
from inference.broker.control import Command
from inference.messages import priority_name
from inference.models import OperatorAction
from inference.wire import status
from inference.wire.errors import RequestError
from inference.wire.llamacpp import SlotAction

logger = logging.getLogger(__name__)

PERMISSION = "inference.change_generation"  # without it, staff may look and not act
ALIVE = ("ready", "draining")
Kind = OperatorAction.Kind


def may_operate(user: User | AnonymousUser) -> bool:
    """Whether a person may act on what belongs to others."""
    return user.is_active and user.is_staff and user.has_perm(PERMISSION)


def act(action: SlotAction, caller: Caller) -> dict[str, Any]:
    """Have a worker do it: its answer, {"worker"} and, of a chat, {"id_slot", "id"}, and what became of it:
    "is_held", "n_decoded" (tokens that a cancelled chat keeps), "priority" and "was", or "is_draining".
    Waits for the answer: for a thread.

    Raises RequestError with nothing changed (400, 403, 404, 409, and 503 without a worker), RedisError or
    OSError while Redis is away. A 503 of a worker that has not answered in time leaves the outcome open.
    """
    _check(caller)
    worker = _worker(action)
    slot = "" if action.slot is None else str(action.slot)
    command = Command(
        action.kind,
        action.generation,
        worker=worker,
        slot=slot,
        reply=uuid.uuid4().hex,
        priority=str(action.priority),
    )
    answer = control.ask_sync(command)
    if answer is None:
        message = f"Worker {worker} has not answered in time: see first what came of it."
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
    if caller.user_id is None:  # who sits at the machine
        return
    try:
        user = User.objects.filter(pk=caller.user_id).first()
        may = user is not None and may_operate(user)
    except DatabaseError:
        message = "Your permission can't be checked: the database is away. Try again in a moment."
        raise RequestError(503, "", message) from None
    if not may:
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
    alive: dict[str, dict[str, Any]] = {s["worker"]: s for s in snapshots if s["state"] in ALIVE}
    if not alive:
        code, body = status.health(snapshots)
        raise RequestError(code, "", body["error"]["message"])
    if action.worker:
        if action.worker not in alive:
            raise RequestError(400, "", f'There is no worker "{action.worker}": there is {_listed(alive)}.')
        return action.worker
    if action.generation:
        for name, snapshot in alive.items():
            if any(
                one["generation"] == action.generation
                for part in ("slots", "parked", "queue")
                for one in snapshot[part]
            ):
                return name
    if len(alive) > 1:
        raise RequestError(400, "", f"There are several workers: name one with &worker=, {_listed(alive)}.")
    return next(iter(alive))


def _listed(workers: dict[str, Any]) -> str:
    return " or ".join(workers)


def _record(kind: str, caller: Caller, answer: dict[str, Any]) -> None:
    """The trace of what was done. It was done even if the database is away, so the log has it, too."""
    by = caller.name or "anybody at this machine"
    id, slot, detail = answer.get("id", ""), answer.get("id_slot", -1), _detail(kind, answer)
    what = f"generation {id}, slot {slot} of " if id else ""
    logger.info("%s by %s: %sworker %s %s", kind, by, what, answer["worker"], detail)
    try:
        OperatorAction.objects.create(
            kind=kind,
            by=by,
            user_id=caller.user_id,
            api_key_id=caller.key_id,
            generation=uuid.UUID(hex=id) if id else None,
            slot=slot,
            worker=answer["worker"],
            detail=detail,
        )
    except DatabaseError:
        logger.exception("The trace of this could not be written")


def _detail(kind: str, answer: dict[str, Any]) -> str:
    if kind == Kind.PRIORITISE:
        return f"from {priority_name(answer['was'])} to {priority_name(answer['priority'])}"
    if kind == Kind.CANCEL and "n_decoded" in answer:
        return f"after {answer['n_decoded']} tokens"
    return ""
