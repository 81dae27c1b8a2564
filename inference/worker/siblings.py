"""The generations of each job: one, or a request's siblings. A job is over when all of them are."""

from __future__ import annotations

from collections.abc import Collection, Iterable


class Siblings:
    """Which generations of which job still run here."""

    def __init__(self) -> None:
        self._running: dict[str, set[str]] = {}
        self._job_of: dict[str, str] = {}

    def add(self, job_id: str, ids: Iterable[str]) -> None:
        self._running[job_id] = set(ids)
        self._job_of |= dict.fromkeys(self._running[job_id], job_id)

    def of(self, job_id: str) -> Collection[str]:
        """Those of a job that are not over; none when the job is, or was never here. The id of one that is
        not the job's first stands for itself."""
        if job_id in self._running:
            return tuple(self._running[job_id])
        return (job_id,) if job_id in self._job_of else ()

    def end(self, id: str) -> str | None:
        """This generation is over: the job that is over with it, if there is one."""
        job_id = self._job_of.pop(id, None)
        if job_id is None:
            return None
        self._running[job_id].remove(id)
        if self._running[job_id]:
            return None
        del self._running[job_id]
        return job_id
