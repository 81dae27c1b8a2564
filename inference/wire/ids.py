"""Ids of a stream's `data:` events, by which a client that comes back says what it has.

An id is `<job id>.<n>`: n of the stream's `data:` events have come. The chunks of several choices come in an
order that nobody could tell again, so that there an id has a count for each choice, `<job id>.<n0>-<n1>`;
what closes the stream counts with choice 0. The events of the logs always make the same chunks, so that a
stream is taken up by making them all again and leaving out those that have come.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from inference.wire.errors import RequestError

COLON = ord(":")
_FORM = re.compile(rb"([0-9a-f]{32})\.(\d{1,10}(?:-\d{1,10}){0,127})")


class Seen(NamedTuple):
    """What a client has: of the stream of this job, so many chunks of each choice."""

    job_id: str
    counts: tuple[int, ...]


def parse(header: bytes) -> Seen:
    """The value of Last-Event-ID. Raises RequestError (400)."""
    found = _FORM.fullmatch(header.strip())
    counts = () if found is None else tuple(map(int, found[2].split(b"-")))
    if found is None or not any(counts):
        raise RequestError(400, "", "Last-Event-ID is no id of a stream: send the last `id:` that came.")
    return Seen(found[1].decode(), counts)


class Ids:
    """Puts ids before a stream's `data:` events and leaves out those that the client has.

    `seen` counts these, for each choice. `shown` False: no ids.
    """

    def __init__(
        self, job_id: str, n_choices: int = 1, seen: Sequence[int] = (), *, shown: bool = True
    ) -> None:
        self._head = f"id: {job_id}.".encode()
        self._seen = list(seen) or [0] * n_choices
        self._count = [0] * n_choices
        self._said = [b"%d" % count for count in self._seen]
        self._shown = shown
        self._is_single = shown and n_choices == 1
        self._as_it_is = not (shown or any(self._seen))

    @property
    def is_resumed(self) -> bool:
        """Whether the client has a part of the stream already."""
        return any(self._seen)

    @property
    def is_behind(self) -> bool:
        """Whether something that the client has did not come again."""
        return any(count < seen for count, seen in zip(self._count, self._seen, strict=True))

    def __call__(self, data: bytes, choice: int = 0) -> bytes:
        """What is sent of an encoder's bytes, which are of this choice."""
        if self._as_it_is or not data:
            return data
        count, seen = self._count[choice], self._seen[choice]
        if self._is_single and count >= seen and data[0] != COLON and data.find(b"\n\n") == len(data) - 2:
            self._count[0] = count = count + 1  # as almost always: the one chunk of a token
            return b"%b%d\n%b" % (self._head, count, data)
        sent: list[bytes] = []
        for event in data.split(b"\n\n")[:-1]:
            is_comment = event.startswith(b":")
            count += not is_comment
            if count > seen or (is_comment and count == seen):
                if self._shown and not is_comment:
                    self._said[choice] = b"%d" % count
                    sent += (self._head, b"-".join(self._said), b"\n")
                sent += (event, b"\n\n")
        self._count[choice] = count
        return b"".join(sent)
