"""Group messages are at most once: what is lost, doubled or late is read from the log, once and in order."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from channels_redis.pubsub import RedisPubSubLoopLayer

from inference.broker import hub as hub_module
from inference.broker.hub import hub
from inference.broker.publisher import Publisher
from inference.messages import Event, Finished, Token

from .play import END, new_id, numbered, soon, told

STREAMS = 200


class Faults:
    """What a bad network does to the messages that this process receives, the same at each run."""

    def __init__(self, lost: float, doubled: float = 0.0, late: float = 0.0) -> None:
        self._chance = random.Random(1)
        self._lost, self._doubled, self._late = lost, doubled, late
        self._held: list[Any] = []
        self._next: list[Any] = []
        self.n_lost = self.n_doubled = self.n_late = 0
        self._receive = RedisPubSubLoopLayer.receive

    async def receive(self, layer: RedisPubSubLoopLayer, channel: str) -> Any:
        while not self._next:
            message = await self._receive(layer, channel)
            dice = self._chance.random()
            if (dice := dice - self._lost) < 0:
                self.n_lost += 1
            elif (dice := dice - self._doubled) < 0:
                self.n_doubled += 1
                self._next += [message, message]
            elif dice - self._late < 0:
                self.n_late += 1
                self._held.append(message)
                continue
            else:
                self._next.append(message)
            self._next += self._held  # they come after a later one
            self._held = []
        return self._next.pop(0)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Faults:
    monkeypatch.setattr(hub_module, "LOOK_EVERY_S", 0.05)
    made = Faults(**request.param)

    async def receive(layer: RedisPubSubLoopLayer, channel: str) -> Any:
        return await made.receive(layer, channel)

    monkeypatch.setattr(RedisPubSubLoopLayer, "receive", receive)
    return made


async def read(id: str, follows: asyncio.Event) -> str:
    """The text of a generation, each event of which comes once and in order."""
    text: list[str] = []
    async with hub().follow(id, fresh=True) as follower:
        follows.set()
        seq, event = 0, None
        while not isinstance(event, Finished):
            found = await follower.next(soon(0.2))
            if found is None:
                continue
            assert found[0] == seq + 1
            seq, event = found
            if isinstance(event, Token | Finished):
                text.append(event.text)
    return "".join(text)


async def write(lives: dict[str, list[Event]], chance: random.Random) -> None:
    """As a worker does: at each flush one message with what some of them have come to."""
    publisher = Publisher("w1")
    said = dict.fromkeys(lives, 0)
    for id in lives:
        publisher.route(id, hub().group)
    while said:
        batch = []
        for id in chance.sample(list(said), min(8, len(said))):
            n = chance.randint(1, 4)
            batch += numbered(id, lives[id][said[id] : said[id] + n], said[id] + 1)
            said[id] += n
            if said[id] >= len(lives[id]):
                del said[id]
        await publisher.publish(batch)


@pytest.mark.parametrize(
    "faults", [{"lost": 0.1}, {"lost": 0.1, "doubled": 0.1, "late": 0.1}, {"lost": 1.0}], indirect=True
)
async def test_200_streams_end_with_exactly_the_text_that_was_generated(faults: Faults):
    chance = random.Random(2)
    texts = {new_id(): [f"{n}." for n in range(chance.randint(1, 40))] for _ in range(STREAMS)}
    lives = {id: told(*said) for id, said in texts.items()}
    ready = {id: asyncio.Event() for id in texts}
    readers = [asyncio.create_task(read(id, ready[id])) for id in texts]
    for event in ready.values():
        await event.wait()
    await write(lives, chance)
    assert await asyncio.gather(*readers) == ["".join(said) + END.text for said in texts.values()]
    assert faults.n_lost > 0
