"""Who may have ended another worker is computed alone, so that a second death tells who it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .sequence import Work


class Trial:
    """`begin(id)` is called before a suspect is computed, `begin("")` when none is any more."""

    def __init__(self, begin: Callable[[str], None]) -> None:
        self._begin = begin
        self._suspects: set[str] = set()  # ids, each until its first token here
        self._now = ""

    @property
    def is_on(self) -> bool:
        return bool(self._suspects or self._now)

    def add(self, ids: Iterable[str]) -> None:
        self._suspects.update(ids)

    def discard(self, id: str) -> None:
        """It has a token, or is over."""
        self._suspects.discard(id)

    def choose(self, work: list[Work]) -> list[Work]:
        """One suspect out of the work, the same until it has its token; all of it if there is none.

        The whole step is its own: its share of one may be less than the piece in which exact mode computes.
        """
        suspects = [one for one in work if one[0].id in self._suspects]
        chosen = next((one for one in suspects if one[0].id == self._now), next(iter(suspects), None))
        id = chosen[0].id if chosen else ""
        if id != self._now:
            self._now = id
            self._begin(id)
        if chosen is None:
            return work
        seq, n = chosen
        return [(seq, n if seq.decoding else min(seq.pending, sum(n for _, n in work)))]
