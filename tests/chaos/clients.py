"""Clients that do what a good client does: read, come back after a cut, ask again when told to."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from .http import Cut, Exchange, error_of
from .plan import Request
from .sse import Comment, Event, Parser
from .tally import Outcome, Tally

ATTEMPTS = 3  # generations that a client asks for until it has its answer
PATIENCE = 600.0  # seconds for one generation, whatever happens; a slow machine is no failure
SILENCE = 30.0  # seconds without a byte after which a stream's client hangs up and comes back
RETRY = 0.3  # seconds until a client comes back
AGAIN = 2.0  # seconds until one asks again for what failed
OVERLOADED = (429, 503)
COME_BACK = "Last-Event-ID"  # in the message of an error: the stream goes on where it was left


class Client(ABC):
    """One generation, from the request to its end."""

    def __init__(self, port: int, request: Request, expected: Sequence[str] | None, tally: Tally) -> None:
        self.port, self.request, self.expected, self.tally = port, request, expected, tally
        self.texts: list[str] = [""] * request.question.n
        self.parser = Parser()
        self.n_read = 0  # events with text
        self.acted = False  # it has left, returned, reloaded, stopped or paused
        self.generation = ""

    async def run(self) -> Outcome:
        try:
            async with asyncio.timeout(PATIENCE):
                return await self.go()
        except TimeoutError:
            return self.outcome("lost", f"not over after {PATIENCE:g} s, {self.n_read} texts had come")
        except (ValueError, LookupError, TypeError) as error:
            return self.outcome("lost", f"what came cannot be read: {error!r}")

    @abstractmethod
    async def go(self) -> Outcome: ...

    @abstractmethod
    async def connect(self) -> Exchange:
        """Open the stream, or go on with it. Raises Cut."""

    @abstractmethod
    def take(self, event: Event) -> Outcome | None:
        """Read an event; the outcome if it was the last."""

    def outcome(self, end: Any, reason: str = "") -> Outcome:
        return Outcome(end, reason, self.generation)

    def whole(self) -> Outcome:
        """It has finished: compare."""
        if self.expected is None or self.texts == list(self.expected):
            return self.outcome("identical")
        return self.outcome("different", f"{self.texts!r} instead of {list(self.expected)!r}")

    async def refusal(self, exchange: Exchange) -> Outcome | None:
        """Why there is no stream; None once the time is over after which the server said to ask again."""
        raw = await exchange.read()
        if exchange.status in OVERLOADED and "retry-after" in exchange.headers:
            self.tally.refused += 1
            await asyncio.sleep(min(float(exchange.headers["retry-after"]), 10))
            return None
        return self.outcome("failed", error_of(exchange.status, raw))

    async def answered(self, ask: Callable[[], Awaitable[Exchange]], status: int) -> bytes | Outcome:
        """Ask until the answer has this status: its body, or why there is none."""
        while True:
            try:
                async with await ask() as exchange:
                    if exchange.status == status:
                        return await exchange.read()
                    outcome = await self.refusal(exchange)
            except Cut as cut:
                if cut.sent:
                    return self.outcome("failed", str(cut))
                outcome = None
                await asyncio.sleep(RETRY)
            if outcome is not None:
                return outcome

    async def follow(self) -> Outcome:
        """The stream up to its end, over as many connections as that takes."""
        is_first = True
        while True:
            try:
                exchange = await self.connect()
            except Cut:
                await asyncio.sleep(RETRY)
                continue
            async with exchange:
                self.tally.reconnects += not is_first
                is_first = False
                try:
                    if exchange.status == 200:
                        outcome = await self._read(exchange)
                    else:
                        outcome = await self.refusal(exchange)
                except Cut:
                    outcome = None
            if outcome is not None:
                return outcome
            if any(self.texts) and not self.parser.last_id:
                return self.outcome("lost", "the stream was cut, and its events have no ids")
            await asyncio.sleep(RETRY)

    async def _read(self, exchange: Exchange) -> Outcome | None:
        """What one connection brings; None when it ends, or is left, before the stream is over."""
        self.parser.begin()
        while True:
            try:
                async with asyncio.timeout(SILENCE):
                    raw = await exchange.piece()
            except TimeoutError:
                return None
            if not raw:
                return None
            for found in self.parser.feed(raw):
                if isinstance(found, Comment):
                    self.tally.parks += found.text.startswith("preempted")
                elif (outcome := self.take(found)) is not None:
                    return outcome
            if not self.acted and self.n_read > self.request.after:
                self.acted = True
                if self.request.manner == "slow":
                    await asyncio.sleep(self.request.pause)
                elif self.request.manner != "stays":
                    exchange.close()
                    return await self.act()

    async def act(self) -> Outcome | None:
        """What a client does that does not stay, after it has hung up; None: it comes back."""
        if self.request.manner == "returns":
            await asyncio.sleep(self.request.pause)
            return None
        return self.outcome("cancelled")


class ApiClient(Client):
    """A program: POST, and the same POST with `Last-Event-ID` after a cut."""

    async def go(self) -> Outcome:
        if self.request.stream:
            return await self.follow()
        if self.request.manner == "leaves":
            try:
                async with asyncio.timeout(self.request.pause):
                    return await self._at_once()
            except TimeoutError:
                return self.outcome("cancelled")
        return await self._at_once()

    def body(self) -> bytes:
        q = self.request.question
        found: dict[str, Any] = {
            "temperature": q.temperature,
            "repeat_penalty": q.repeat_penalty,
            "seed": q.seed,
            "ignore_eos": True,
            "stream": self.request.stream,
            "n_predict" if q.endpoint == "/completion" else "max_tokens": q.n_tokens,
        }
        if q.n > 1:
            found["n"] = q.n
        if q.endpoint == "/v1/chat/completions":
            found["messages"] = [{"role": "user", "content": q.prompt}]
        else:
            found["prompt"] = q.prompt
        return json.dumps(found).encode()

    async def connect(self) -> Exchange:
        headers = {"Content-Type": "application/json"}
        if self.parser.last_id:
            headers["Last-Event-ID"] = self.parser.last_id
        small = self.request.manner == "slow"
        path = self.request.question.endpoint
        return await Exchange.open(self.port, "POST", path, self.body(), headers, small=small)

    async def _at_once(self) -> Outcome:
        """An answer that is not streamed."""
        found = await self.answered(self.connect, 200)
        if isinstance(found, Outcome):
            return found
        self._put(json.loads(found))
        return self.whole()

    def take(self, event: Event) -> Outcome | None:
        if event.data == "[DONE]":
            return self.whole()
        found = json.loads(event.data)
        if "error" in found:
            message = found["error"]["message"]
            return None if COME_BACK in message else self.outcome("failed", f"in the stream: {message}")
        self.n_read += self._put(found)
        return self.whole() if found.get("stop") is True else None

    def _put(self, found: dict[str, Any]) -> bool:
        """Add what a chunk or an answer shows; whether it shows any."""
        shown = False
        for part in found.get("choices", [found]):
            about = part.get("delta") or part.get("message") or part
            text = about.get("content") or about.get("text") or ""
            self.texts[part.get("index", 0)] += text
            shown = shown or bool(text)
        return shown
