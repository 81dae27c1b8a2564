"""Generations with parks, as the recorder leaves them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from inference.models import Generation, Preemption

BORN = datetime(2026, 3, 14, 12, 0, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return BORN + timedelta(seconds=seconds)


def generation(**fields: Any) -> Generation:
    """One that waited 1 s, read its prompt until 3 s, and wrote until 10 s."""
    usual: dict[str, Any] = {
        "state": "finished",
        "finish_reason": "stop",
        "created_at": BORN,
        "started_at": after(1),
        "ttft_s": 3.0,
        "finished_at": after(10),
        "worker": "w1",
        "model": "smol",
        "api": "chat",
    }
    return Generation.objects.create(**usual | fields)


def park(of: Generation, begin: float, end: float | None, **fields: Any) -> Preemption:
    usual: dict[str, Any] = {
        "cause": "pressure",
        "kind": "swap",
        "slot": 1,
        "cells": 150,
        "bytes": 3 << 20,
        "parked_at": of.created_at + timedelta(seconds=begin),
    }
    if end is not None:
        usual |= {"resumed_at": of.created_at + timedelta(seconds=end), "waited_s": end - begin}
    return of.preemptions.create(**usual | fields)
