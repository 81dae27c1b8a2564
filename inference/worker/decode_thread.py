"""The thread that owns the llama_context, and the two queues that join it to the asyncio thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections import deque
from typing import Any

from inference.broker.control import Command
from inference.engine.engine import Emitted, Engine, Life
from inference.engine.sequence import Sequence
from inference.messages import Event, Token

from . import by_hand
from .snapshot import Snapshots

logger = logging.getLogger(__name__)

SNAPSHOT_EVERY_S = 1.0  # while nothing but tokens happens


class DecodeThread(threading.Thread):
    """Steps the engine while there is work. Events and snapshots gather until the other side takes them,
    so that a publisher that is busy finds several steps' events at once."""

    def __init__(self, engine: Engine, snapshots: Snapshots, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(name="decode", daemon=True)
        self._engine, self._snapshots, self._loop = engine, snapshots, loop
        # a sequence to add, an id to cancel, a command to answer, lives to take over, None: stop
        self._inbox: deque[Sequence | str | Command | list[Life] | None] = deque()
        self._awake = threading.Condition()
        self._out: list[Emitted] = []
        self._out_lock = threading.Lock()
        self._snapshot: dict[str, Any] = snapshots.take()
        self._snapshot_at = 0.0
        self._shown_transfers = 0
        self._awaited = True
        self._has_events = asyncio.Event()
        self._urgent = asyncio.Event()  # among the events is one that is no token
        self.has_snapshot = asyncio.Event()
        self.error: BaseException | None = None
        self.ended = asyncio.Event()

    # --- the asyncio thread's side ----------------------------------------------------------------

    def tell(self, seq_id: str, event: Event) -> None:
        """Put an event of the intake's among the engine's, which will follow it in order."""
        with self._out_lock:
            self._out.append((seq_id, event))
        self._has_events.set()
        self._urgent.set()

    def add(self, seq: Sequence) -> None:
        self._put(seq)

    def take_over(self, lives: list[Life]) -> None:
        """Go on with sequences of a worker that is gone."""
        self._put(lives)

    def cancel(self, seq_id: str) -> None:
        self._put(seq_id)

    def obey(self, command: Command) -> None:
        """Have a park or an unpark by hand carried out; its answer comes among the events."""
        self._put(command)

    def stop(self) -> None:
        self._put(None)

    def _put(self, item: Sequence | str | Command | list[Life] | None) -> None:
        with self._awake:
            self._inbox.append(item)
            self._awake.notify()

    async def events(self) -> list[Emitted]:
        """What happened since the last call, at least one event: waits for it."""
        while not (out := self.take_events()):
            await self._has_events.wait()
            self._has_events.clear()
        return out

    async def gather(self, seconds: float) -> None:
        """Let tokens gather for so long, or until something else happens that is to be told at once."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._urgent.wait()

    def take_events(self) -> list[Emitted]:
        """What happened since the last call; waits for nothing."""
        with self._out_lock:
            out, self._out = self._out, []
            self._awaited = not out
            self._urgent.clear()
        return out

    def take_snapshot(self) -> dict[str, Any]:
        """The newest picture of the slots."""
        self.has_snapshot.clear()
        return self._snapshot

    # --- the decode thread's side -----------------------------------------------------------------

    def run(self) -> None:
        try:
            while self._receive():
                events = self._engine.step()
                self._hand_out(events)
        except BaseException as error:
            self.error = error
            logger.exception("The decode thread died")
        self._loop.call_soon_threadsafe(self.ended.set)

    def _receive(self) -> bool:
        """Carry out what came in; sleep while there is nothing to do. False: stop."""
        engine = self._engine
        while True:
            changed, events = False, []
            while self._inbox:
                item = self._inbox.popleft()
                if item is None:
                    return False
                changed = True
                if isinstance(item, Sequence):
                    engine.add(item)
                elif isinstance(item, Command):
                    events += by_hand.carry_out(engine, item)
                elif isinstance(item, list):
                    engine.take_over(item)
                else:
                    engine.cancel(item)
            if changed:
                self._hand_out([*events, *engine.drain()], picture=True)
            if not engine.idle:
                return True
            with self._awake:
                while not self._inbox:
                    self._awake.wait()

    def _hand_out(self, events: list[Emitted], picture: bool = False) -> None:
        if events:
            with self._out_lock:
                self._out += events
                awaited, self._awaited = self._awaited, False
            if awaited:  # a wake-up for each step would cost more than the publishing
                self._loop.call_soon_threadsafe(self._has_events.set)
            if any(type(event) is not Token for _, event in events):
                picture = True
                self._loop.call_soon_threadsafe(self._urgent.set)
        now = time.monotonic()
        transfers = self._engine.n_transfers
        if picture or transfers != self._shown_transfers or now - self._snapshot_at >= SNAPSHOT_EVERY_S:
            self._snapshot, self._snapshot_at = self._snapshots.take(), now
            self._shown_transfers = transfers
            self._loop.call_soon_threadsafe(self.has_snapshot.set)
