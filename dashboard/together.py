"""Tokens that have come together are told together."""

from __future__ import annotations

from inference.broker.hub import Follower
from inference.messages import Event, Token


class Together:
    """A follower whose tokens come as one, with the last one's number, when several are there: a browser
    takes each event by itself, and would stand still over the thousands that a page has missed."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._held: tuple[int, Event] | None = None  # what came behind the tokens

    async def next(self, deadline: float) -> tuple[int, Event] | None:
        """As Follower.next."""
        found, self._held = self._held or await self._follower.next(deadline), None
        if found is None:
            return None
        seq, first = found
        if not isinstance(first, Token):
            return found
        texts = [first.text]
        while (behind := self._follower.ready()) and isinstance(behind[1], Token):
            seq = behind[0]
            texts.append(behind[1].text)
        self._held = behind
        return seq, Token(first.token, "".join(texts))
