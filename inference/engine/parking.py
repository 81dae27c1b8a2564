"""The mechanism of parking: KV state in host RAM, copied piece by piece and within a budget.

A sequence leaves from its end and comes back from its start, so that what it has in the cache is always
its first `cells` tokens. Whole pieces stay valid in RAM while it goes on: a later park copies what is new.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from .llama import Context, SavedState
from .sequence import Sequence

PIECE = 128  # tokens; about 3 ms of copying for a small model, less than a decode step of any
UNDIVIDED = 1 << 30


@dataclass(slots=True)
class HostCopy:
    """Piece i of a sequence's state holds the positions from i * PIECE on; the last one can be shorter."""

    pieces: dict[int, SavedState] = field(default_factory=dict)
    charged: int = 0  # bytes of the budget that it takes, copied already or not

    @property
    def nbytes(self) -> int:
        return sum(piece.nbytes for piece in self.pieces.values())


class Parking:
    """Moves sequences between the KV cache and host RAM. `budget`: bytes, -1 for no bound."""

    def __init__(self, ctx: Context, budget: int) -> None:
        self._ctx = ctx
        self._budget = budget
        self.piece = PIECE if ctx.swap == "pieces" else UNDIVIDED
        self.charged = 0  # bytes, of all copies
        self._cell_bytes = 0  # as of the last park
        self.bytes_out = self.bytes_in = 0  # copied so far

    def kept(self, residents: Iterable[Sequence]) -> int:
        """Bytes that residents keep of their earlier parks."""
        return sum(s.copy.charged for s in residents if s.copy is not None and not s.moving)

    def has_room(self, residents: Collection[Sequence]) -> bool:
        """Whether the biggest resident could be parked by swap."""
        if self._ctx.swap == "none":
            return False
        if self._budget < 0:
            return True
        biggest = max((s.cells for s in residents), default=0)
        return self.charged - self.kept(residents) + biggest * self._cell_bytes <= self._budget

    def reserve(self, seq: Sequence, residents: Iterable[Sequence]) -> bool:
        """Set RAM aside for the cells of a sequence. False when it does not fit, or cannot be saved.

        What residents keep of their earlier parks goes first.
        """
        if self._ctx.swap == "none":
            return False
        copy = seq.copy or HostCopy()
        missing = range(self.piece * len(copy.pieces), seq.cells, self.piece)
        if missing:
            if self.piece == UNDIVIDED:
                size = self._ctx.state_size(seq.slot)
            else:
                size = sum(self._ctx.piece_bound(min(self.piece, seq.cells - start)) for start in missing)
            self._cell_bytes = size // (seq.cells - missing.start)
            for other in residents:
                if self._fits(size):
                    break
                if not other.moving:
                    self.drop(other)
            if not self._fits(size):
                self.drop(seq)
                return False
            self._charge(copy, copy.charged + size)
        seq.copy = copy
        return True

    def out(self, seq: Sequence) -> bool:
        """Copy its last piece, unless RAM has it, and release the cells. False: it could not be saved."""
        assert seq.copy is not None
        i = (seq.cells - 1) // self.piece
        start = i * self.piece
        if i not in seq.copy.pieces:
            if self.piece == UNDIVIDED:
                data = self._ctx.save(seq.slot)
            else:
                data = self._ctx.save_piece(seq.slot, start, seq.cells)
            if data is None:
                return False
            seq.copy.pieces[i] = data
            self.bytes_out += data.nbytes
        self._ctx.remove(seq.slot, start or -1)
        seq.cells = start
        if not start:
            self._charge(seq.copy, seq.copy.nbytes)
        return True

    def back(self, seq: Sequence) -> bool:
        """Bring its next piece into free cells. False when llama.cpp found too few: nothing changed."""
        assert seq.copy is not None
        i = seq.cells // self.piece
        data = seq.copy.pieces[i]
        load = self._ctx.load if self.piece == UNDIVIDED else self._ctx.load_piece
        if not load(seq.slot, data):
            return False
        self.bytes_in += data.nbytes
        seq.cells = min((i + 1) * self.piece, seq.swapped)
        return True

    def abandon(self, seq: Sequence) -> None:
        """Release the cells of a sequence whose copy is whole."""
        self._ctx.remove(seq.slot)
        seq.cells = 0

    def keep(self, seq: Sequence) -> None:
        """The sequence is back and goes on: only its whole pieces stay what they are."""
        assert seq.copy is not None
        whole = seq.cells // self.piece
        seq.copy.pieces = {i: data for i, data in seq.copy.pieces.items() if i < whole}
        self._charge(seq.copy, seq.copy.nbytes)

    def discard(self, seq: Sequence) -> None:
        """Release the cells and the RAM of a sequence that has a slot."""
        self._ctx.remove(seq.slot)
        self.drop(seq)

    def drop(self, seq: Sequence) -> None:
        """Release a sequence's RAM."""
        if seq.copy is not None:
            self._charge(seq.copy, 0)
            seq.copy = None

    def _fits(self, size: int) -> bool:
        return self._budget < 0 or self.charged + size <= self._budget

    def _charge(self, copy: HostCopy, size: int) -> None:
        self.charged += size - copy.charged
        copy.charged = size
