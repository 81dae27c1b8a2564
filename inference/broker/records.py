"""What happened to each generation, for the database: every event except tokens and answers.

A record is {"id", "kind", "worker", "at", "data"}: `kind` an event's or `submitted`, `at` in seconds
since the epoch, `data` the event's fields. Nobody is slowed by a database that is away.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import time
from collections.abc import Sequence
from typing import Any

from redis.exceptions import ResponseError

from inference.messages import from_json

from .connect import BLOCK_MS, entries, sync_client
from .keys import RECORDER_GROUP, RECORDS

logger = logging.getLogger(__name__)

MAX_RECORDS = 100_000
BATCH = 500
CLAIM_AFTER_MS = 30_000  # a batch that its reader has not acknowledged by then goes to another
FORGET_AFTER_MS = 3_600_000  # a reader that has not read for so long is gone

Record = dict[str, Any]
TYPES: dict[str, Any] = {"id": str, "kind": str, "worker": str, "at": float | int, "data": dict}


def encode(id: str, kind: str, worker: str, data: dict[str, Any]) -> str:
    """A record of something that happens now, as the stream holds it in its field `r`."""
    record: Record = {"id": id, "kind": kind, "worker": worker, "at": time.time(), "data": data}
    return json.dumps(record, separators=(",", ":"))


def append(pipe: Any, id: str, kind: str, worker: str, data: dict[str, Any]) -> None:
    """Add a record to a pipeline, sync or async."""
    raw = encode(id, kind, worker, data)
    pipe.execute_command("XADD", RECORDS, "MAXLEN", "~", MAX_RECORDS, "*", "r", raw)


def _decode(fields: dict[bytes, bytes]) -> Record | None:
    """The record in an entry; None when there is none."""
    try:
        record = from_json(fields[b"r"])
        is_one = re.fullmatch("[0-9a-f]{32}", record["id"]) and all(
            isinstance(record[name], types) for name, types in TYPES.items()
        )
    except (KeyError, TypeError, ValueError):
        return None
    return record if is_one else None


class RecordReader:
    """One of the readers that share the records. For a thread; raises RedisError while Redis is away."""

    def __init__(self) -> None:
        self._name = f"{socket.gethostname()}-{os.getpid()}"
        self._claimed_at = float("-inf")

    def read(self) -> list[tuple[str, Record]]:
        """The next records with their entry ids, oldest first; [] when none came for some seconds."""
        try:
            found = self._left_behind() or entries(
                sync_client().xreadgroup(
                    RECORDER_GROUP, self._name, {RECORDS: ">"}, count=BATCH, block=BLOCK_MS
                )
            )
        except ResponseError as error:
            if "NOGROUP" not in str(error):
                raise
            self._create_group()
            return []
        records: list[tuple[str, Record]] = []
        unusable: list[str] = []
        for id, fields in found:
            if not fields:
                continue
            if record := _decode(fields):
                records.append((id.decode(), record))
            else:
                logger.error("Record %s is none and is left out", id.decode())
                unusable.append(id.decode())
        self.ack(unusable)
        return records

    def ack(self, entry_ids: Sequence[str]) -> None:
        """These are written."""
        if entry_ids:
            pipe = sync_client().pipeline(transaction=False)
            pipe.xack(RECORDS, RECORDER_GROUP, *entry_ids)
            pipe.xdel(RECORDS, *entry_ids)
            pipe.execute()

    def _left_behind(self) -> list[tuple[bytes, dict[bytes, bytes]]]:
        """Records that a reader took and did not acknowledge."""
        now = time.monotonic()
        if now - self._claimed_at < CLAIM_AFTER_MS / 1000:
            return []
        reply: Any = sync_client().xautoclaim(
            RECORDS, RECORDER_GROUP, self._name, CLAIM_AFTER_MS, count=BATCH
        )
        if not reply[1]:
            self._claimed_at = now
            self._forget_readers()
        return list(reply[1])

    def _forget_readers(self) -> None:
        """Those that are gone and left nothing behind: each web process was one."""
        client: Any = sync_client()
        for reader in client.xinfo_consumers(RECORDS, RECORDER_GROUP):
            if reader["idle"] > FORGET_AFTER_MS and not reader["pending"]:
                client.xgroup_delconsumer(RECORDS, RECORDER_GROUP, reader["name"])

    def _create_group(self) -> None:
        try:
            sync_client().xgroup_create(RECORDS, RECORDER_GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
