"""The live picture of the slots, as the monitor, /slots and /metrics show it. Never anybody's text."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from inference.engine.engine import Engine
from inference.engine.sequence import Sequence

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
        shown: dict[int, Sequence] = {s.slot: s for s in reversed(engine.parked.values()) if s.slot >= 0}
        shown |= {s.slot: s for s in engine.residents}
        counters = asdict(engine.counters)
        decodes, busy = counters["n_decode_total"], counters.pop("busy_slots_total")
        counters["n_busy_slots_per_decode"] = busy / decodes if decodes else 0.0
        counters["preempt_ram_bytes"] = engine.parked_bytes
        self._measure(now)
        return {
            "pool": {"cells": engine.n_cells, "used": engine.used_cells},
            "slots": [self._slot(i, shown.get(i), epoch) for i in range(engine.n_slots)],
            "parked": [_parked(s, epoch) for s in engine.parked.values()],
            "queue": [
                {
                    "generation": s.id,
                    "owner": s.owner,
                    "priority": s.priority,
                    "since": epoch + s.arrived_at,
                    "n_prompt_tokens": s.n_prompt,
                }
                for s in engine.queued.values()
            ],
            "counters": counters,
        }

    def _measure(self, now: float) -> None:
        rates: dict[str, tuple[float, int, float]] = {}
        for s in self._engine.residents:
            at, generated, rate = self._rates.get(s.id, (now, s.generated, 0.0))
            if now - at >= RATE_OVER_S:
                rate = (s.generated - generated) / (now - at)
                at, generated = now, s.generated
            rates[s.id] = (at, generated, rate)
        self._rates = rates

    def _slot(self, slot: int, s: Sequence | None, epoch: float) -> dict[str, Any]:
        if s is None:
            return {
                "id": slot,
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
            }
        resident = s.id in self._rates
        return {
            "id": slot,
            "state": "parked" if not resident else "decode" if s.decoding else "prefill",
            "generation": s.id,
            "owner": s.owner,
            "priority": s.priority,
            "held": s.held,
            "cells": s.cells if resident else 0,
            "n_prompt_tokens": s.n_prompt,
            "n_prompt_processed": min(s.cells, s.n_prompt),
            "n_decoded": s.generated,
            "tokens_per_second": round(self._rates[s.id][2], 1) if resident else 0.0,
            "parks": s.parks,
            "since": epoch + (s.active_since if resident else s.parked_at),
        }


def _parked(s: Sequence, epoch: float) -> dict[str, Any]:
    return {
        "generation": s.id,
        "owner": s.owner,
        "priority": s.priority,
        "held": s.held,
        "slot": s.slot,
        "cells": s.cells,
        "bytes": s.saved.nbytes if s.saved is not None else 0,
        "since": epoch + s.parked_at,
        "cause": s.cause,
        "parks": s.parks,
    }
