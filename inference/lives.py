"""What records make of a generation's row and of its parks.

A record that comes twice, or a little after its successor, changes nothing or still fits: a generation's
state is worked out from what is known of it, not from which record came last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Manager, Value
from django.db.models.functions import Concat, Left

from inference.broker.records import Record
from inference.models import ApiKey, Chat, Generation, Message, Preemption

EARLY = timedelta(seconds=20)  # a failure younger than this may have overtaken its submission


@dataclass
class Life:
    """One generation and its parks while a batch of records is applied to them; saved once, at its end."""

    generation: Generation
    parks: list[Preemption]
    is_new: bool = False  # it has no row yet
    has_news: bool = False
    ended_at: datetime | None = None  # when it ended, if a record of this batch told so
    parks_with_news: list[Preemption] = field(default_factory=list)

    def save(self, texts: Mapping[UUID, str]) -> None:
        if not (self.is_new or self.has_news):
            return
        generation = self.generation
        self._settle()
        generation.save(force_insert=self.is_new)
        for park in self.parks_with_news:
            park.save()
        if self.ended_at and generation.pk in texts:
            messages = Message.objects.filter(generations=generation)
            before = Left("content", generation.goes_on_from) if generation.goes_on_from else Value("")
            messages.update(content=Concat(before, Value(texts[generation.pk])))
            chats = Chat.objects.filter(messages__generations=generation, updated_at__lt=self.ended_at)
            chats.update(updated_at=self.ended_at)

    def _settle(self) -> None:
        """Work out the state and the parks from what is known, in whatever order it came to be known."""
        generation = self.generation
        if not generation.is_over:
            if any(park.resumed_at is None for park in self.parks):
                generation.state = Generation.State.PARKED
            elif generation.started_at:
                generation.state = Generation.State.RUNNING
        elif generation.finished_at:
            for park in self.parks:
                if park.waited_s is None:  # it ended while parked
                    park.waited_s = max(0.0, (generation.finished_at - park.parked_at).total_seconds())
                    self.note(park)
        if generation.state not in (Generation.State.FINISHED, Generation.State.CANCELLED):  # those were told
            generation.parks = len(self.parks)
            generation.parked_s = sum(park.waited_s or 0.0 for park in self.parks)
        if self.parks:
            last = max(self.parks, key=lambda park: park.parked_at)
            generation.park_cause, generation.park_kind = last.cause, last.kind

    def note(self, park: Preemption) -> None:
        """A park that is new or has changed."""
        if all(park is not known for known in self.parks):
            self.parks.append(park)
        if all(park is not known for known in self.parks_with_news):
            self.parks_with_news.append(park)


def storable(text: str) -> str:
    """PostgreSQL takes every character but one."""
    return text.replace("\0", "")


def write(record: Record, lives: dict[UUID, Life]) -> bool:
    """Apply one record to its generation, which may be a new one. False: it came too early."""
    apply = _APPLY.get(record["kind"])
    if apply is None:
        return True
    pk, at, data = UUID(hex=record["id"]), datetime.fromtimestamp(record["at"], UTC), record["data"]
    life = lives.get(pk)
    if life is None:
        if record["kind"] == "failed":
            # A job that is no generation can fail too, and has no row. Another recorder may also be
            # about to write the submission: then this record comes again.
            return at < datetime.now(UTC) - EARLY
        life = lives[pk] = Life(Generation(pk=pk, created_at=at), [], is_new=True)
    if apply(life, data, at):
        life.generation.worker = record["worker"] or life.generation.worker
        life.has_news = True
    return True


# --- one function a kind: True when the record says something new ---------------------------------

Data = Mapping[str, Any]


def _submitted(life: Life, data: Data, at: datetime) -> bool:
    """Fills what the row lacks: the chat makes its rows itself, before it submits."""
    generation = life.generation
    before = vars(generation).copy()
    generation.api = generation.api or data.get("api", "")[:40]
    generation.model = generation.model or storable(data.get("model", ""))[:200]
    generation.stream = generation.stream or bool(data.get("stream"))
    generation.priority = data.get("priority", generation.priority)
    generation.user_id = generation.user_id or _known(User.objects, data.get("user_id"))
    generation.api_key_id = generation.api_key_id or _known(ApiKey.objects, data.get("key_id"))
    generation.message_id = generation.message_id or _known(Message.objects, data.get("message_id"))
    generation.created_at = min(generation.created_at, at)
    return vars(generation) != before


def _known(rows: Manager[Any], pk: int | None) -> int | None:
    """`pk`, unless its row has been deleted meanwhile."""
    return pk if pk is not None and rows.filter(pk=pk).exists() else None


def _accepted(life: Life, data: Data, at: datetime) -> bool:
    news = life.generation.prompt_tokens is None
    life.generation.prompt_tokens = data["prompt_tokens"]
    life.generation.accepted_at = min(life.generation.accepted_at or at, at)
    return news


def _started(life: Life, data: Data, at: datetime) -> bool:
    before = life.generation.started_at
    life.generation.started_at = min(before or at, at)
    return life.generation.started_at != before


def _preempted(life: Life, data: Data, at: datetime) -> bool:
    if any(park.parked_at == at and park.cause for park in life.parks):
        return False
    # A resume that was written before its park stands there without a cause.
    early = [p for p in life.parks if not p.cause and p.resumed_at and p.resumed_at >= at]
    park = min(early, key=_resumption, default=None) or Preemption(generation=life.generation, kind="")
    park.slot, park.cells, park.bytes, park.parked_at = data["slot"], data["cells"], data["bytes"], at
    park.cause, park.kind = data["cause"], park.kind or data["method"]
    life.note(park)
    return True


def _resumed(life: Life, data: Data, at: datetime) -> bool:
    if any(park.resumed_at == at for park in life.parks):
        return False
    waiting = [p for p in life.parks if p.resumed_at is None and p.parked_at <= at]
    park = min(waiting, key=lambda p: p.parked_at, default=None)
    if park is None:
        begun = at - timedelta(seconds=data["waited"])
        park = Preemption(generation=life.generation, slot=data["slot"], parked_at=begun, kind="")
    park.resumed_at, park.waited_s = at, data["waited"]
    park.kind = data.get("method") or park.kind
    life.note(park)
    life.generation.started_at = life.generation.started_at or at
    return True


def _prioritised(life: Life, data: Data, at: datetime) -> bool:
    before = life.generation.priority
    life.generation.priority = data["priority"]
    return life.generation.priority != before


def _resumption(park: Preemption) -> datetime:
    assert park.resumed_at is not None
    return park.resumed_at


def _finished(life: Life, data: Data, at: datetime) -> bool:
    generation = life.generation
    if generation.is_over:
        return False
    cancelled = data["stop_type"] == "cancelled"
    generation.state = Generation.State.CANCELLED if cancelled else Generation.State.FINISHED
    generation.finish_reason = {
        "cancelled": Generation.FinishReason.CANCELLED,
        "limit": Generation.FinishReason.LENGTH,
    }.get(data["stop_type"], Generation.FinishReason.STOP)
    generation.prompt_tokens, generation.completion_tokens = data["prompt_tokens"], data["completion_tokens"]
    generation.cached_tokens = data["timings"]["cache_n"]
    generation.parks, generation.parked_s = data["parks"], data["parked_s"]
    generation.ttft_s = data["ttft_s"] if data["completion_tokens"] else None
    generation.finished_at = life.ended_at = at
    return True


def _failed(life: Life, data: Data, at: datetime) -> bool:
    generation = life.generation
    if generation.is_over:
        return False
    generation.state = Generation.State.FAILED
    generation.error = storable(data["message"])
    generation.finished_at = life.ended_at = at
    return True


_APPLY: dict[str, Callable[[Life, Data, datetime], bool]] = {
    "submitted": _submitted,
    "accepted": _accepted,
    "started": _started,
    "preempted": _preempted,
    "resumed": _resumed,
    "prioritised": _prioritised,
    "finished": _finished,
    "failed": _failed,
}
