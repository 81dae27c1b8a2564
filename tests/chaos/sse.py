"""Server-sent events as their specification has them read: what is cut off within an event never was."""

from __future__ import annotations

from typing import NamedTuple


class Event(NamedTuple):
    kind: str  # "" when the stream does not say
    data: str


class Comment(NamedTuple):
    text: str


class Parser:
    """`last_id` is what a client says in `Last-Event-ID` when it comes back."""

    def __init__(self) -> None:
        self.last_id = ""
        self._rest = b""

    def begin(self) -> None:
        """A new connection: what came of an unfinished event is forgotten."""
        self._rest = b""

    def feed(self, raw: bytes) -> list[Event | Comment]:
        """The events and comments that these bytes complete."""
        *blocks, self._rest = (self._rest + raw).split(b"\n\n")
        found: list[Event | Comment] = []
        for block in blocks:
            kind, data = "", []
            for line in block.decode().split("\n"):
                name, _, value = line.partition(":")
                value = value.removeprefix(" ")
                if not name:
                    found.append(Comment(value))
                elif name == "data":
                    data.append(value)
                elif name == "event":
                    kind = value
                elif name == "id":
                    self.last_id = value
            if data:
                found.append(Event(kind, "\n".join(data)))
        return found
