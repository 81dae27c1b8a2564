"""The other half of the broker, played by a test: what a worker says and does."""

from __future__ import annotations

import asyncio
import time
import uuid
from typing import Any

import pytest

from inference.broker import occupancy
from inference.messages import Accepted, Event, Finished, Job, Started, Timings, Token
from inference.worker.snapshot import HISTOGRAMS, IDLE

END = Finished("eos", "", "", 3, 2, False, 0, Timings(), 0, 0.0, 0.1)


def new_id() -> str:
    return uuid.uuid4().hex


def job(id: str = "", reply_to: str = "") -> Job:
    return Job(id or new_id(), "tokenize", {"content": "x"}, reply_to)


def told(*texts: str) -> list[Event]:
    """A whole generation that says these texts."""
    return [Accepted(3, 1, 9), Started(0), *(Token(i, text) for i, text in enumerate(texts)), END]


def numbered(id: str, events: list[Event], first: int = 1) -> list[tuple[str, int, Event]]:
    return [(id, seq, event) for seq, event in enumerate(events, first)]


def soon(seconds: float = 20.0) -> float:
    """A deadline that no passing test reaches."""
    return asyncio.get_running_loop().time() + seconds


def picture(worker: str = "w1", state: str = "ready", **more: Any) -> dict[str, Any]:
    """A snapshot of a worker with one idle slot."""
    model = {
        "alias": "tiny",
        "path": "/models/tiny.gguf",
        "desc": "a model",
        "size": 1,
        "n_params": 1,
        "n_vocab": 9,
        "n_ctx_train": 64,
        "chat_template": "",
    }
    counters = {
        "prompt_tokens_total": 0,
        "prompt_tokens_cached_total": 0,
        "prompt_seconds_total": 0.0,
        "tokens_predicted_total": 0,
        "tokens_predicted_seconds_total": 0.0,
        "n_decode_total": 0,
        "n_busy_slots_per_decode": 0.0,
        "n_preempt_total": 0,
        "n_resume_total": 0,
        "preempt_ram_bytes": 0,
        "preempt_ram_kept_bytes": 0,
        "cache_ram_bytes": 0,
        "recomputed_tokens_total": 0,
        "copied_out_bytes_total": 0,
        "copied_in_bytes_total": 0,
        "context_shifts_total": 0,
    }
    histogram = {"bounds": [1.0, 5.0], "counts": [0, 0, 0], "sum": 0.0}
    return {
        "worker": worker,
        "at": time.time(),
        "started_at": 0.0,
        "state": state,
        "model": model,
        "n_ctx": 64,
        "n_ctx_seq": 64,
        "pool": {"cells": 64, "used": 0},
        "slots": [IDLE],
        "parked": [],
        "queue": [],
        "device": "a processor",
        "taken_at": time.time(),
        "silence": 0.0,
        "head": None,
        "swap": "pieces",
        "context_shift": False,
        "exact": False,
        "counters": counters,
        "moves": {"parks": [], "resumes": []},
        "histograms": dict.fromkeys(HISTOGRAMS, histogram),
    } | more


async def show(**more: Any) -> None:
    await occupancy.put(picture(**more))


def count_readings(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each time that the occupancy is read from now on."""
    readings: list[None] = []
    get_all = occupancy.get_all

    async def counted() -> Any:
        readings.append(None)
        return await get_all()

    monkeypatch.setattr(occupancy, "get_all", counted)
    return readings
