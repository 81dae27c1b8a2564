"""Where every sequence is: in a slot, on its way out of one, or in a line."""

from __future__ import annotations

from collections.abc import Iterator

from .line import Line
from .scheduler import line_key
from .sequence import Sequence, State


class Places:
    """The slots and the two lines: each sequence is in one of four collections, by its state.

    The collections themselves are never replaced.
    """

    def __init__(self, n_slots: int) -> None:
        self.n_slots = n_slots
        self.residents: list[Sequence] = []  # and those who are returning
        self.leaving: list[Sequence] = []
        self.parked: Line[Sequence] = Line(line_key)
        self.queued: Line[Sequence] = Line(line_key)

    def find(self, seq_id: str) -> Sequence | None:
        """The sequence of that id, unless it is over."""
        waiting = self.queued.get(seq_id) or self.parked.get(seq_id)
        return waiting or next((s for s in (*self.residents, *self.leaving) if s.id == seq_id), None)

    def everyone(self) -> Iterator[Sequence]:
        yield from self.residents
        yield from self.leaving
        yield from self.parked
        yield from self.queued

    @property
    def used_cells(self) -> int:
        return sum(s.cells for s in self.residents) + sum(s.cells for s in self.leaving)

    def occupy(self, seq: Sequence, state: State, now: float) -> None:
        """Give it a slot: the one it had if nobody is in it, else the first that is free."""
        taken = self._taken_slots()
        if seq.slot < 0 or seq.slot in taken:
            seq.slot = self._free_slot(taken)
        seq.state, seq.since = state, now
        self.residents.append(seq)

    def free_slot(self) -> int:
        """A slot that nobody is in and, if there is one, that no parked sequence will return to."""
        return self._free_slot(self._taken_slots())

    def _taken_slots(self) -> set[int]:
        return {s.slot for s in self.residents} | {s.slot for s in self.leaving}

    def _free_slot(self, taken: set[int]) -> int:
        kept = {s.slot for s in self.parked}
        free = [i for i in range(self.n_slots) if i not in taken]
        return next((i for i in free if i not in kept), free[0])

    def remove(self, seq: Sequence) -> None:
        """Take it out of wherever it is."""
        if seq.state is State.PARKED:
            self.parked.pop(seq.id)
        elif seq.state is State.QUEUED:
            self.queued.pop(seq.id)
        elif seq.state is State.LEAVING:
            self.leaving.remove(seq)
        else:
            self.residents.remove(seq)
