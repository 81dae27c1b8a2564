"""Turns of a chat: what the model reads of it, how a turn begins, and how one is ended."""

from __future__ import annotations

from .asking import API, UNREACHABLE, Busy, NotPossible, Refused, edit, go_on, regenerate, send, show
from .ends import (
    CONTEXT_SIZE,
    LOST,
    YOUNG,
    can_be_asked_again,
    is_at_limit,
    is_lost,
    is_unfinished,
    mend,
    settle,
    stop,
)
from .requests import job

__all__ = [
    "API",
    "CONTEXT_SIZE",
    "LOST",
    "UNREACHABLE",
    "YOUNG",
    "Busy",
    "NotPossible",
    "Refused",
    "can_be_asked_again",
    "edit",
    "go_on",
    "is_at_limit",
    "is_lost",
    "is_unfinished",
    "job",
    "mend",
    "regenerate",
    "send",
    "settle",
    "show",
    "stop",
]
