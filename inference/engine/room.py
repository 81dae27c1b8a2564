"""How many cells may be planned with: all, but after a step that found fewer, only so many."""

from __future__ import annotations


class Room:
    """`cells` is what a plan may fill."""

    def __init__(self, n_cells: int) -> None:
        self._all = self.cells = n_cells

    def found(self, n_cells: int) -> None:
        """No more than these there turned out to be."""
        self.cells = n_cells

    def reset(self) -> None:
        """A resident has left for good, or hardly anybody is there: what was found says nothing any more."""
        self.cells = self._all
