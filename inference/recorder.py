"""Records -> rows: what happened to each generation, as the workers tell it.

One thread a web process reads the stream of records; the consumer group behind it gives each record to
one of them. What a record makes of a row is in `lives.py`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import TypeVar
from uuid import UUID

from django.db import (
    InterfaceError,
    InternalError,
    OperationalError,
    ProgrammingError,
    close_old_connections,
    transaction,
)

from inference.broker import connect, people
from inference.broker import log as event_log
from inference.broker.records import Record, RecordReader
from inference.messages import Finished, Token
from inference.models import Generation

from .lives import Life, storable, write

logger = logging.getLogger(__name__)

# The database or Redis is away, locked, full or not migrated yet: wait, the records are fine.
AWAY = (OperationalError, InterfaceError, InternalError, ProgrammingError, *connect.AWAY)
FIRST_WAIT, LONGEST_WAIT = 0.1, 10.0  # seconds
GATHER_S = 0.5  # between two batches: one transaction for what came in the meantime

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


def _lives_in(entries: Sequence[Entry]) -> dict[UUID, Life]:
    """Those that these records tell of and that have a row, locked."""
    pks = {UUID(hex=record["id"]) for _, record in entries}
    rows = Generation.objects.select_for_update().filter(pk__in=pks).order_by("pk")
    return {row.pk: Life(row, list(row.preemptions.all())) for row in rows.prefetch_related("preemptions")}


def _texts_written_by(entries: Sequence[Entry]) -> dict[UUID, str]:
    """The whole text of each generation that ends in this batch and writes a message. Where its log cannot be
    read, the text up to there, and its record becomes that of a failure.

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
    if event_log.UNREADABLE in events:
        record |= {"kind": "failed", "data": asdict(event_log.UNREADABLE)}
    elif not any(isinstance(event, Finished) for event in events):
        text += record["data"].get("text", "")
    return storable(text)
