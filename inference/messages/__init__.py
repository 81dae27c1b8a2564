"""Every message between Berth's processes, in one place: plain data, importing nothing of the rest.

A web process turns a request body into a `GenerationRequest` and submits it inside a `Job`. The worker
answers with `Event`s. The n-th event of a generation has sequence number n, counted from 1; the event
log and the group message carry the same number, so that a reader can see a gap.
"""

from __future__ import annotations

from .events import (
    TERMINAL,
    Accepted,
    Answer,
    Event,
    Failed,
    Finished,
    Preempted,
    Prioritised,
    Released,
    Resumed,
    Started,
    Timings,
    Token,
    decode_event,
    encode_event,
)
from .jobs import MOST_SIBLINGS, Job, JobKind, sibling_ids
from .reading import from_json
from .requests import (
    HIGH,
    HIGHEST,
    LOW,
    LOWEST,
    NORMAL,
    PRIORITIES,
    RANDOM_SEED,
    GenerationRequest,
    Prompt,
    SamplingParams,
    priority_name,
)

__all__ = [
    "HIGH",
    "HIGHEST",
    "LOW",
    "LOWEST",
    "MOST_SIBLINGS",
    "NORMAL",
    "PRIORITIES",
    "RANDOM_SEED",
    "TERMINAL",
    "Accepted",
    "Answer",
    "Event",
    "Failed",
    "Finished",
    "GenerationRequest",
    "Job",
    "JobKind",
    "Preempted",
    "Prioritised",
    "Prompt",
    "Released",
    "Resumed",
    "SamplingParams",
    "Started",
    "Timings",
    "Token",
    "decode_event",
    "encode_event",
    "from_json",
    "priority_name",
    "sibling_ids",
]
