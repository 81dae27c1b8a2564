from __future__ import annotations

from dashboard.together import Together
from inference.broker.hub import hub
from inference.broker.publisher import Publisher
from inference.messages import Accepted, Event, Resumed, Started, Token
from tests.broker.play import END, new_id, numbered, soon


async def test_tokens_that_are_there_are_told_as_one_with_the_last_ones_number():
    id = new_id()
    events: list[Event] = [Accepted(3, 1, 9), Started(0), Token(1, "a "), Token(2, ""), Token(3, "boat")]
    events += [Resumed(0, 1.0), Token(4, "."), END]
    await Publisher("w1").publish(numbered(id, events))
    async with hub().follow(id) as follower:
        together = Together(follower)
        found = [await together.next(soon()) for _ in range(6)]
    assert found == [
        (1, events[0]),
        (2, events[1]),
        (5, Token(1, "a boat")),
        (6, events[5]),
        (7, events[6]),
        (8, END),
    ]
