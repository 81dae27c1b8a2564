"""Every key in Redis, in one place."""

from __future__ import annotations

import os

PREFIX = os.environ.get("BERTH_REDIS_PREFIX", "berth:")

JOBS = f"{PREFIX}jobs"  # stream; read by the consumer group of workers
CONTROL = f"{PREFIX}control"  # stream; read by every worker
RECORDS = f"{PREFIX}records"  # stream; read by the consumer group of recorders
WORKERS = f"{PREFIX}workers"  # set of the ids of workers that live or lived
ADMITTED = f"{PREFIX}admitted"  # sorted set: job -> the second at which its permit lapses
PERMITS = f"{PREFIX}permits"  # hash: job -> how many generations, and whose
IN_FLIGHT = f"{PREFIX}in-flight"  # hash: account -> its generations that are not over

WORKER_GROUP = "workers"
RECORDER_GROUP = "recorders"


def event_log(generation: str) -> str:
    """Stream; the entry id of an event is its sequence number."""
    return f"{PREFIX}gen:{generation}"


def snapshot(worker: str) -> str:
    """String; there as long as the worker lives."""
    return f"{PREFIX}worker:{worker}"


def attempts(digest: str) -> str:
    """Number; how often somebody has tried to sign in of late."""
    return f"{PREFIX}attempts:{digest}"
