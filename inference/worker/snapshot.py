"""The live picture of the slots, as the monitor, /slots and /metrics show it. Never anybody's text."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from inference.engine.engine import Engine
from inference.engine.sequence import Sequence, State

HISTOGRAMS = ("first_token_seconds", "parked_seconds", "copy_out_seconds", "copy_in_seconds")
IDLE: dict[str, Any] = {
    "id": 0,
    "state": "idle",
    "generation": None,
    "owner": None,
    "priority": 0,
    "held": False,
    "cells": 0,
    "n_prompt_tokens": 0,
    "n_prompt_processed": 0,
    "n_decoded": 0,
    "tokens_per_second": 0.0,
    "parks": 0,
    "since": None,
}  # a slot that nobody is in
RATE_OVER_S = 1.0  # tokens per second are averaged over about this long


class Snapshots:
    """Takes pictures of an engine. Belongs to the thread that steps it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rates: dict[str, tuple[float, int, float]] = {}  # id -> (time, generated, tokens per second)

    def take(self) -> dict[str, Any]:
        """Slots, pool, parked, queue and counters; see docs/architecture.md. Times are of the epoch."""
        engine = self._engine
        now = engine.clock()
        epoch = time.time() - now
        shown: dict[int, Sequence] = {s.slot: s for s in reversed(list(engine.parked)) if s.slot >= 0}
        shown |= {s.slot: s for s in (*engine.residents, *engine.leaving)}
        counted = asdict(engine.counters)
        counters = {name: n for name, n in counted.items() if isinstance(n, int | float)}
        decodes, busy = counters["n_decode_total"], counters.pop("busy_slots_total")
        counters["n_busy_slots_per_decode"] = busy / decodes if decodes else 0.0
        counters["preempt_ram_bytes"] = engine.parked_bytes
        counters["preempt_ram_kept_bytes"] = engine.kept_bytes
        counters["cache_ram_bytes"] = engine.cached_bytes
        counters["copied_out_bytes_total"], counters["copied_in_bytes_total"] = engine.copied_bytes
        self._measure(now)
        head = engine.head
        turns = {s.id: turn for turn, s in enumerate(engine.line, 1)}
        return {
            "taken_at": epoch + now,
            "silence": self._longest_silence(now),
            "head": head
            and {
                "generation": head.sequence.id,
                "owner": head.sequence.owner,
                "needs": head.needs,
                "free": head.free,
                "slots": head.slots,
            },
            "pool": {"cells": engine.n_cells, "used": engine.used_cells},
            "slots": [self._slot(i, shown.get(i), epoch) for i in range(engine.n_slots)],
            "parked": [_parked(s, epoch, turns.get(s.id)) for s in (*engine.parked, *engine.leaving)],
            "queue": [
                {
                    "generation": s.id,
                    "owner": s.owner,
                    "priority": s.priority,
                    "since": epoch + s.arrived_at,
                    "n_prompt_tokens": s.n_prompt,
                    "turn": turns.get(s.id),
                }
                for s in engine.queued
            ],
            "counters": counters,
            "moves": {
                name: [[cause, method, n] for (cause, method), n in moves.items()]
                for name, moves in (("parks", engine.counters.parks), ("resumes", engine.counters.resumes))
            },
            "histograms": {name: counted[name] for name in HISTOGRAMS},
        }

    def _measure(self, now: float) -> None:
        rates: dict[str, tuple[float, int, float]] = {}
        for s in self._engine.residents:
            if s.moving:
                continue
            at, generated, rate = self._rates.get(s.id, (now, s.generated, 0.0))
            if now - at >= RATE_OVER_S:
                rate = (s.generated - generated) / (now - at)
                at, generated = now, s.generated
            rates[s.id] = (at, generated, rate)
        self._rates = rates

    def _longest_silence(self, now: float) -> float:
        """Seconds for which some chat has got no token, though nobody holds it; 0 when all are written."""
        waiting = (s for s in self._engine.everyone() if not (s.held or s.decoding))
        since = min((s.parked_at if s.first_token_at else s.arrived_at for s in waiting), default=now)
        return max(0.0, now - since)

    def _slot(self, slot: int, s: Sequence | None, epoch: float) -> dict[str, Any]:
        if s is None:
            return IDLE | {"id": slot}
        resident = s.id in self._rates
        return {
            "id": slot,
            "state": _state(s),
            "generation": s.id,
            "owner": s.owner,
            "priority": s.priority,
            "held": s.held,
            "cells": s.cells,
            "n_prompt_tokens": s.n_prompt,
            "n_prompt_processed": s.n_prompt if s.generated else min(s.cells, s.n_prompt),
            "n_decoded": s.generated,
            "tokens_per_second": round(self._rates[s.id][2], 1) if resident else 0.0,
            "parks": s.parks,
            "since": epoch + s.since,
        }


def _state(s: Sequence) -> str:
    if s.state is State.RESIDENT:
        return "decode" if s.decoding else "prefill"
    return {State.LEAVING: "parking", State.PARKED: "parked", State.RETURNING: "resuming"}[s.state]


def _parked(s: Sequence, epoch: float, turn: int | None) -> dict[str, Any]:
    return {
        "generation": s.id,
        "owner": s.owner,
        "priority": s.priority,
        "held": s.held,
        "slot": s.slot,
        "cells": s.swapped,
        "tokens": len(s.tokens),
        "bytes": s.copy.charged if s.copy is not None else 0,
        "since": epoch + s.parked_at,
        "method": s.method,
        "cause": s.cause,
        "parks": s.parks,
        "turn": turn,
    }
