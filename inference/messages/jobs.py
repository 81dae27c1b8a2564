"""A piece of work for a worker, and the ids of what it generates."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from .reading import as_dict, from_json, read

JobKind = Literal["generate", "tokenize", "detokenize", "apply_template"]
MOST_SIBLINGS = 256  # as many as two hex digits tell apart


def sibling_ids(job_id: str, n: int) -> list[str]:
    """The ids of a job's generations, 32 hex digits each, that differ in the last two at most.

    The first is the job's own: a request for one choice has one id.
    """
    return [job_id, *(f"{int(job_id, 16) ^ i:032x}" for i in range(1, n))]


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work for a worker. `body` is a GenerationRequest as a dict, or {"content": str},
    {"tokens": [int]}, {"messages": [...]} for the other kinds."""

    id: str  # also the id of its first generation
    kind: JobKind
    body: dict[str, Any]
    reply_to: str  # the channel group of the web process that asked; "" when nobody listens
    owner: str = ""  # a name for operators: user or API key, never text
    submitted_at: float = 0.0  # seconds since the epoch
    goes_on: bool = False  # its logs hold a part of it, which was cancelled
    account: str = ""  # whose it is: what is computed of its prompt is kept for that account alone

    def generations(self) -> list[str]:
        """The ids of its generations; its own id where it is no generation."""
        return sibling_ids(self.id, max(1, len(self.body.get("prompts", ()))) * self.body.get("n", 1))

    def to_json(self) -> str:
        return json.dumps(as_dict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, raw: str | bytes) -> Job:
        """Raises ValueError for what is no job."""
        found: Job = read(cls, from_json(raw))
        prompts, n = found.body.get("prompts", ()), found.body.get("n", 1)
        if not re.fullmatch("[0-9a-f]{32}", found.id):
            raise ValueError(f"no id of a job: {found.id!r:.80}")
        if not (isinstance(prompts, list | tuple) and type(n) is int):
            raise ValueError("prompts and n are no list and no number")
        if not 1 <= max(1, len(prompts)) * n <= MOST_SIBLINGS:
            raise ValueError(f"{len(prompts)} prompts times {n} are no number of generations")
        return found
