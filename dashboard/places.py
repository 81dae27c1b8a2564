"""Where the generations are just now, in the words of their readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference.broker import occupancy

SHARED_S = 0.4  # so old it may be for one page, when another has asked for it
ROUND_TO = 10  # tokens: what somebody waits for changes with each token that others write

State = dict[str, Any]
"""`state`, and what there is to tell of it:

waiting: `turn`, 1 being next · reading: `done` of `total` tokens · writing · resuming · paused, or held by an
operator, or moving to another worker: `cause`, `since` (seconds of the epoch), `turn`.

Who is next has `needs`, the tokens for which there is no room yet.
"""
_IN_SLOT = {"prefill": "reading", "decode": "writing", "resuming": "resuming"}


async def places() -> Mapping[str, State]:
    """The state of each generation that a live worker has, by its id. Raises RedisError or OSError."""
    return await _places.get()


def _of_all(snapshots: list[occupancy.Snapshot]) -> Mapping[str, State]:
    found: dict[str, State] = {}
    for snapshot in snapshots:
        for slot in snapshot.get("slots", ()):
            if slot["state"] in _IN_SLOT:
                found[slot["generation"]] = _resident(slot)
        head = snapshot.get("head") or {}
        for one in snapshot.get("queue", ()):
            found[one["generation"]] = {"state": "waiting", **_turn(one, head)}
        for one in snapshot.get("parked", ()):
            found[one["generation"]] = _parked(one, head)
    return found


_places = occupancy.Shared(_of_all, SHARED_S)


def _resident(slot: dict[str, Any]) -> State:
    state: State = {"state": _IN_SLOT[slot["state"]]}
    if state["state"] == "reading":  # what it has written already may be read again
        state |= {"done": slot["cells"], "total": slot["n_prompt_tokens"] + slot["n_decoded"]}
    return state


def _parked(one: dict[str, Any], head: dict[str, Any]) -> State:
    cause = one.get("cause", "")
    word = "held" if one.get("held") else "moving" if cause == "worker" else "paused"
    return {"state": word, "cause": cause, "since": one["since"], **_turn(one, head)}


def _turn(one: dict[str, Any], head: dict[str, Any]) -> State:
    if (turn := one.get("turn")) is None:
        return {}
    if one["generation"] != head.get("generation"):
        return {"turn": turn}
    missing = max(0, head["needs"] - head["free"])
    return {"turn": turn, "needs": -(-missing // ROUND_TO) * ROUND_TO}
