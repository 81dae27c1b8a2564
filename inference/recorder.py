"""Records -> rows: what happened to each generation, as the workers tell it.

One thread a web process reads the stream of records; the consumer group behind it gives each record to
one of them. A record that comes twice, or a little after its successor, changes nothing or still fits:
a generation's state is worked out from what is known of it, not from which record came last.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from django.contrib.auth.models import User
from django.db import (
    InterfaceError,
    InternalError,
    OperationalError,
    ProgrammingError,
    close_old_connections,
    transaction,
)
from django.db.models import Manager, Value
from django.db.models.functions import Concat, Left

from inference.broker import connect, people
from inference.broker import log as event_log
from inference.broker.records import Record, RecordReader
from inference.messages import Finished, Token
from inference.models import ApiKey, Chat, Generation, Message, Preemption

logger = logging.getLogger(__name__)

# The database or Redis is away, locked, full or not migrated yet: wait, the records are fine.
AWAY = (OperationalError, InterfaceError, InternalError, ProgrammingError, *connect.AWAY)
FIRST_WAIT, LONGEST_WAIT = 0.1, 10.0  # seconds
GATHER_S = 0.5  # between two batches: one transaction for what came in the meantime
EARLY = timedelta(seconds=20)  # a failure younger than this may have overtaken its submission

Entry = tuple[str, Record]
T = TypeVar("T")


class Recorder:
    """Writes batches of records. `wait(seconds)` is called between attempts while something is away;
    `tell(ids)` with the generations that have ended, once that is written. It must return at once."""

    def __init__(
        self,
        reader: RecordReader,
        wait: Callable[[float], object] = time.sleep,
        tell: Callable[[list[str]], object] = lambda ids: None,
    ) -> None:
        self.reader = reader
        self.wait = wait
        self.tell = tell

    def run_once(self) -> int:
        """Write one batch and acknowledge it once it is committed; the number of records in it."""
        entries = self._persist(self.reader.read)
        if entries:
            done = self._persist(partial(write_batch, entries))
            self._persist(partial(self.reader.ack, done))
            written = set(done)
            over = [r["id"] for id, r in entries if id in written and r["kind"] in ("finished", "failed")]
            self._persist(partial(event_log.let_go_sync, over))
            self._persist(partial(_tell_readers, over))
            if over:
                self.tell(over)
        return len(entries)

    def run(self) -> None:
        """Write batches for ever."""
        while True:
            try:
                self.run_once()
                self.wait(GATHER_S)
            except Exception:
                # Unacknowledged, so the batch comes again.
                logger.exception("The recorder met an error it does not know; it goes on")
                self.wait(LONGEST_WAIT)

    def _persist(self, step: Callable[[], T]) -> T:
        """Do `step` until nothing it needs is away. Says so once, however long it takes."""
        delay = FIRST_WAIT
        while True:
            close_old_connections()
            try:
                result = step()
            except AWAY as error:
                if delay == FIRST_WAIT:
                    logger.warning("Records wait, nothing is lost: %s", error)
                self.wait(delay)
                delay = min(2 * delay, LONGEST_WAIT)
            else:
                if delay > FIRST_WAIT:
                    logger.info("Records are written again")
                return result
            finally:
                close_old_connections()


_start = threading.Lock()
_thread: threading.Thread | None = None


def start_thread(tell: Callable[[list[str]], object] = lambda ids: None) -> threading.Thread:
    """Start this process's recorder, or return the one that runs. It ends with the process."""
    global _thread
    with _start:
        if _thread is None or not _thread.is_alive():
            _thread = threading.Thread(
                target=lambda: Recorder(RecordReader(), tell=tell).run(), name="recorder", daemon=True
            )
            _thread.start()
        return _thread


def write_batch(entries: Sequence[Entry]) -> list[str]:
    """Write these in one transaction; the ids of the entries that need not come again.

    One that cannot be written is logged and left out.
    """
    try:
        texts = _texts_written_by(entries)
        with transaction.atomic():
            lives = _lives_in(entries)
            written = [entry_id for entry_id, record in entries if write(record, lives)]
            for life in lives.values():
                life.save(texts)
            return written
    except AWAY:
        raise
    except Exception:
        if len(entries) > 1:
            return [entry_id for entry in entries for entry_id in write_batch([entry])]
        logger.exception("Record %s cannot be written and is left out", entries[0][0])
        return [entries[0][0]]


def _tell_readers(ids: Sequence[str]) -> None:
    """Have the pages of those whose chats these generations answered show how they ended."""
    if ids:
        answers = Generation.objects.filter(pk__in=ids, message__isnull=False)
        for person, chat in answers.values_list("message__chat__user", "message__chat"):
            people.changed_sync(person, chat)


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


def _lives_in(entries: Sequence[Entry]) -> dict[UUID, Life]:
    """Those that these records tell of and that have a row, locked."""
    pks = {UUID(hex=record["id"]) for _, record in entries}
    rows = Generation.objects.select_for_update().filter(pk__in=pks).order_by("pk")
    return {row.pk: Life(row, list(row.preemptions.all())) for row in rows.prefetch_related("preemptions")}


def _texts_written_by(entries: Sequence[Entry]) -> dict[UUID, str]:
    """The whole text of each generation that ends in this batch and writes a message.

    Read before the transaction, so that no write lock is held while Redis answers.
    """
    ends = {
        UUID(hex=record["id"]): record for _, record in entries if record["kind"] in ("finished", "failed")
    }
    with_message = Generation.objects.filter(pk__in=ends, message__isnull=False).values_list("pk", flat=True)
    return {pk: _text_of(ends[pk]) for pk in with_message}


def _text_of(record: Record) -> str:
    events = [event for _, event in event_log.read_sync(record["id"], 0)]
    text = "".join(event.text for event in events if isinstance(event, Token | Finished))
    if not any(isinstance(event, Finished) for event in events):
        text += record["data"].get("text", "")
    return _storable(text)


def _storable(text: str) -> str:
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
    generation.model = generation.model or _storable(data.get("model", ""))[:200]
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
    generation.parks, generation.parked_s = data["parks"], data["parked_s"]
    generation.ttft_s = data["ttft_s"] if data["completion_tokens"] else None
    generation.finished_at = life.ended_at = at
    return True


def _failed(life: Life, data: Data, at: datetime) -> bool:
    generation = life.generation
    if generation.is_over:
        return False
    generation.state = Generation.State.FAILED
    generation.error = _storable(data["message"])
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
