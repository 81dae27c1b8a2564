"""Who waits for a place, by id and in the order of their turn."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Generic, Protocol, TypeVar


class Identified(Protocol):
    @property
    def id(self) -> Any: ...


S = TypeVar("S", bound=Identified)


class Line(Generic[S]):
    """A collection that is always in the order of `key`; equals are in the order in which they were added.

    A sequence's key must not change while it is in the line. Adding and removing cost a binary search, and
    iteration from the head costs nothing to begin, however many wait.
    """

    def __init__(self, key: Callable[[S], float]) -> None:
        self._key = key
        self._order: list[tuple[float, int, S]] = []
        self._places: dict[Any, tuple[float, int, S]] = {}
        self._count = count()

    def add(self, s: S) -> None:
        place = (self._key(s), next(self._count), s)
        self._places[s.id] = place
        insort(self._order, place)

    def pop(self, id: Any) -> S:
        """Take it out of the line. Raises KeyError."""
        place = self._places.pop(id)
        del self._order[bisect_left(self._order, place)]
        return place[2]

    def get(self, id: Any) -> S | None:
        place = self._places.get(id)
        return place[2] if place else None

    def __contains__(self, s: object) -> bool:
        return getattr(s, "id", None) in self._places

    def __iter__(self) -> Iterator[S]:
        return (s for _, _, s in self._order)

    def __len__(self) -> int:
        return len(self._order)
