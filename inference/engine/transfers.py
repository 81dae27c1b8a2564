"""Out of the KV cache and back: how a park and a resume are carried out, over as many steps as it takes."""

from __future__ import annotations

from collections.abc import Callable

from inference.messages import Event, Preempted, Released, Resumed, Started

from .context_shift import ContextShift
from .counters import Counters
from .parking import Parking
from .past import Past
from .places import Places
from .sequence import Sequence, State

Emit = Callable[[Sequence, Event], None]


class Transfers:
    """Parks and resumes sequences, copies them bit by bit, and tells of it.

    A park is told when it begins: its slot and its cells are free only when it has left. A resume is told
    when everything is back.
    """

    def __init__(
        self,
        places: Places,
        parking: Parking,
        shift: ContextShift,
        counters: Counters,
        emit: Emit,
        clock: Callable[[], float],
    ) -> None:
        self._places, self._parking, self._shift = places, parking, shift
        self._counters, self._emit, self._clock = counters, emit, clock

    # --- out ------------------------------------------------------------------------------------

    def park(self, seq: Sequence, cause: str) -> None:
        """Begin to swap a resident out to host RAM or, where it does not fit the budget, drop its cells."""
        residents = self._places.residents
        residents.remove(seq)
        if seq.moving:  # nobody was told that it is back, and its copy is whole
            self._parking.abandon(seq)
            seq.state, seq.since = State.PARKED, seq.parked_at
            self._places.parked.add(seq)
            return
        now = self._clock()
        seq.pause_clock(now)
        cells = seq.cells
        if cells and self._parking.reserve(seq, residents):
            seq.method, seq.swapped = "swap", cells
        else:
            self._drop_cells(seq)
        self._tell_parked(seq, cause, cells, now)
        self._leave(seq, now)

    def park_queued(self, seq: Sequence) -> None:
        """Its prompt finds no room: it is told so, and waits in line with the parked."""
        self._places.queued.pop(seq.id)
        seq.slot = self._places.free_slot()
        seq.method = "recompute"
        self._tell_parked(seq, "admission", 0, self._clock())
        self._leave(seq, seq.since)

    def take_over(self, seq: Sequence, past: Past) -> None:
        """It had a place with another worker, or was parked there: here it is parked.

        Its turn is that of its arrival if it had a place, before those who waited; the last one if its client
        was gone.
        """
        parked_at = self._clock() - past.parked_ago
        if self._shift.is_due(seq):
            self._shift.make_room(seq)
        seq.method, seq.redo = "recompute", len(seq.tokens) - 1 if past.tokens else 0
        if past.is_parked:
            seq.cause, seq.parked_at, seq.since = past.cause, parked_at, parked_at
            if past.is_held:  # who held it does not know of this worker
                self._emit(seq, Released())
        else:
            self._tell_parked(seq, past.gone, 0, parked_at)
            self._counters.parks[seq.cause, seq.method] += 1
        if past.gone == "client":
            seq.since = self._clock()
        seq.state = State.PARKED
        self._places.parked.add(seq)

    def _drop_cells(self, seq: Sequence) -> None:
        """It is parked by recompute: what it had will be computed again."""
        self._parking.discard(seq)
        redo = max(seq.redo, seq.swapped, seq.cells)
        seq.cells = seq.swapped = 0
        if self._shift.is_due(seq):
            self._shift.make_room(seq)
        seq.method, seq.redo = "recompute", min(redo, len(seq.tokens) - 1)

    def _tell_parked(self, seq: Sequence, cause: str, cells: int, now: float) -> None:
        seq.cause, seq.parked_at, seq.park_due, seq.copy_s = cause, now, False, 0.0
        seq.parks += 1
        self._counters.n_preempt_total += 1
        held = seq.copy.charged if seq.copy is not None else 0
        self._emit(seq, Preempted(seq.slot, cause, cells, held, seq.method))

    def _leave(self, seq: Sequence, since: float) -> None:
        seq.state, seq.since = State.LEAVING, since
        self._places.leaving.append(seq)
        if not seq.cells:
            self._leave_slot(seq)

    def _leave_slot(self, seq: Sequence) -> None:
        """Its last cell is released."""
        self._places.leaving.remove(seq)
        seq.state = State.PARKED
        self._places.parked.add(seq)
        self._counters.parks[seq.cause, seq.method] += 1  # only now is it certain how
        if seq.method == "swap":
            self._counters.copy_out_seconds.observe(seq.copy_s)

    # --- back -----------------------------------------------------------------------------------

    def resume(self, seq: Sequence) -> None:
        """Give it a slot, into which its state comes back."""
        self._places.parked.pop(seq.id)
        seq.copy_s = 0.0
        if seq.swapped:
            self._places.occupy(seq, State.RETURNING, self._clock())
        else:
            self._places.occupy(seq, State.RESIDENT, self._clock())
            self._tell_resumed(seq)

    def _tell_resumed(self, seq: Sequence) -> None:
        now = self._clock()
        waited = now - seq.parked_at
        seq.state, seq.since = State.RESIDENT, now
        seq.parked_s += waited
        seq.active_since = now
        counters = self._counters
        counters.n_resume_total += 1
        counters.resumes[seq.cause, seq.method] += 1
        counters.parked_seconds.observe(waited)
        if seq.swapped:
            counters.copy_in_seconds.observe(seq.copy_s)
            self._parking.keep(seq)
            seq.swapped = 0
        self._emit(seq, Resumed(seq.slot, waited, seq.method))
        self.announce_start(seq)

    def announce_start(self, seq: Sequence) -> None:
        """Tell of its first slot, once."""
        if not seq.started:
            seq.started = True
            self._emit(seq, Started(seq.slot))

    # --- copying --------------------------------------------------------------------------------

    def copy(self, needed: int, n_cells: int, seconds: float) -> None:
        """Bring them on: until a step finds its `needed` free of `n_cells`, then for so many seconds."""
        places, until = self._places, self._clock() + seconds
        while places.leaving:
            self.copy_out(places.leaving[0])
            if n_cells - places.used_cells >= needed and self._clock() >= until:
                return
        for seq in [s for s in places.residents if s.moving]:
            while seq.moving:
                self._copy_back(seq)
                if self._clock() >= until:
                    return

    def copy_out(self, seq: Sequence) -> None:
        """The next piece of one that leaves."""
        started = self._clock()
        if not self._parking.out(seq):
            self._drop_cells(seq)
        seq.copy_s += self._clock() - started
        if not seq.cells:
            self._leave_slot(seq)

    def _copy_back(self, seq: Sequence) -> None:
        started = self._clock()
        if not self._parking.back(seq):
            if self._places.used_cells > seq.cells:
                self.park(seq, seq.cause)
            else:  # there is nobody whose cells could be waited for
                self._drop_cells(seq)
                self._tell_resumed(seq)
            return
        seq.copy_s += self._clock() - started
        if seq.cells == seq.swapped:
            self._tell_resumed(seq)
