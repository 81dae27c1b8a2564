"""What an operator does with a chat. Runs in the decode thread, between two steps."""

from __future__ import annotations

from typing import Any

from inference.broker.control import Command
from inference.engine.engine import Emitted, Engine
from inference.engine.sequence import Sequence, State
from inference.messages import Answer, Released

CONFLICT = 409


def carry_out(engine: Engine, command: Command) -> list[Emitted]:
    """Park and hold, release, cancel or prioritise whom the command means: what happened, and last the
    answer, which is {"id_slot", "id", "worker"} and what became of it, or {"status", "error"} with nothing
    changed."""
    found = _find(engine, command)
    if isinstance(found, Answer):
        return [(command.reply, found)]
    done = {"id_slot": found.slot, "id": found.id, "worker": command.worker}
    outcome = _do(engine, command, found)
    if isinstance(outcome, str):
        who = f"chat in slot {found.slot}" if found.slot >= 0 else "chat"
        return [(command.reply, _refusal(CONFLICT, f"The {who} {outcome}."))]
    events = engine.drain()
    if command.kind == "unpark":
        events.append((found.id, Released()))
    return [*events, (command.reply, Answer(done | outcome))]


def _do(engine: Engine, command: Command, found: Sequence) -> dict[str, Any] | str:
    """What the answer adds, or why it could not be done."""
    if command.kind == "park":
        return engine.hold(found.id) or {"is_held": True}
    if command.kind == "unpark":
        return engine.release(found.id) or {"is_held": False}
    if command.kind == "prioritise":
        was, priority = found.priority, int(command.priority)
        return engine.prioritise(found.id, priority) or {"priority": priority, "was": was}
    n_decoded = found.generated
    engine.cancel(found.id)
    return {"n_decoded": n_decoded}


def _find(engine: Engine, command: Command) -> Sequence | Answer:
    everyone = list(engine.everyone())
    slot = int(command.slot or -1)
    if command.id:
        named = next((s for s in everyone if s.id == command.id), None)
        if named is None:
            return _refusal(404, f"There is no chat {command.id}: it has ended.")
        if command.slot and named.slot != slot:
            return _refusal(CONFLICT, f"Chat {command.id} belongs to slot {named.slot}, not to {slot}.")
        return named
    if not 0 <= slot < engine.n_slots:
        return _refusal(400, f"There is no slot {slot}: this worker's are 0 to {engine.n_slots - 1}.")
    here = [s for s in everyone if s.slot == slot]
    # Another chat may run where a held one was: unpark means the held, and of several the one held longest.
    held = sorted((s for s in here if s.held), key=lambda s: s.parked_at) if command.kind == "unpark" else []
    residents = [s for s in here if s.state is State.RESIDENT]
    found = next(iter([*held, *residents, *here]), None)
    return found or _refusal(CONFLICT, f"Slot {slot} is idle: there is no chat to {command.kind}.")


def _refusal(status: int, error: str) -> Answer:
    return Answer({"status": status, "error": error})
