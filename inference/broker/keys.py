"""Every key in Redis, in one place."""

from __future__ import annotations

PREFIX = "berth:"

JOBS = f"{PREFIX}jobs"  # stream; read by the consumer group of workers
QUEUED = f"{PREFIX}queued"  # hash: generation -> the entry of its job in the stream
CONTROL = f"{PREFIX}control"  # stream; read by every worker
RECORDS = f"{PREFIX}records"  # stream; read by the consumer group of recorders
WORKERS = f"{PREFIX}workers"  # set of the ids of workers that live or lived
INCARNATIONS = f"{PREFIX}incarnations"  # hash; the worker's id by the token of each that may publish
LAST_TOKEN = f"{PREFIX}incarnation"  # counter
LEASE = f"{PREFIX}lease:"  # with a token: string; there as long as that incarnation is heard of
SUSPECTS = f"{PREFIX}suspects:"  # with a token: hash; what that incarnation tries again after a death
ADMITTED = f"{PREFIX}admitted"  # sorted set: job -> the second at which its permit lapses
PERMITS = f"{PREFIX}permits"  # hash: job -> how many generations, and whose
IN_FLIGHT = f"{PREFIX}in-flight"  # hash: account -> its generations that are not over
PATROL = f"{PREFIX}patrol"  # string; there as long as nobody else need look for answers that are lost
BELL = f"{PREFIX}bell"  # channel; heard by every web process

WORKER_GROUP = "workers"
RECORDER_GROUP = "recorders"


def event_log(generation: str) -> str:
    """Stream; the entry id of an event is its sequence number."""
    return f"{PREFIX}gen:{generation}"


def stream(job: str) -> str:
    """Hash: what a client must show to take up the stream of this job, and who reads it."""
    return f"{PREFIX}stream:{job}"


def title(generation: str) -> str:
    """String; the chat that this generation makes a title for."""
    return f"{PREFIX}title:{generation}"


def snapshot(worker: str) -> str:
    """String; there as long as the worker lives."""
    return f"{PREFIX}worker:{worker}"


def ring(worker: str, span: str) -> str:
    """Hash of a worker's points over this span; the newest takes the place of the oldest."""
    return f"{PREFIX}points:{span}:{worker}"


def lanes(worker: str) -> str:
    """Stream of the changes in a worker's slots."""
    return f"{PREFIX}lanes:{worker}"


def seen(worker: str) -> str:
    """Number; when a worker wrote of its slots last, by its own clock."""
    return f"{PREFIX}seen:{worker}"


def attempts(digest: str) -> str:
    """Number; how often somebody has done something of late."""
    return f"{PREFIX}attempts:{digest}"


def changes(person: int) -> str:
    """Stream of the chats of a person that have changed of late."""
    return f"{PREFIX}changes:{person}"
