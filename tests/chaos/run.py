"""A plan carried out on a real stack, from its start to the moment when nothing is left of it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from inference.broker.keys import JOBS, PREFIX
from inference.models import Generation
from tests.e2e.stack import PASSWORD, PEOPLE, Stack

from . import lossy
from .clients import AGAIN, ATTEMPTS, ApiClient, Client
from .faults import Faults
from .http import Cut, Exchange
from .page import PageClient, Session
from .plan import PAGE_TOKENS, Plan, Question, Request
from .processes import Processes
from .tally import Outcome, Tally

SETTLE = 300.0  # seconds in which everything that is over has to be put away
FLAGS: dict[str, int | float | str] = {
    "ctx-size": 240,  # two or three chats: the others are parked, and park one another
    "parallel": 4,
    "preempt-every": 16,
    "preempt-ram": 16,  # MiB: for about 700 tokens; who finds no room is recomputed
    "temp": 0.8,  # of the browser's chats
    "seed": 7,
    "n-predict": PAGE_TOKENS,
}


class Run:
    def __init__(
        self,
        plan: Plan,
        folder: Path,
        *,
        clients: int = 8,
        workers: int = 2,
        drop: float = 0.1,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._plan, self._n_clients, self._say = plan, clients, say
        stack = Stack(folder, **FLAGS, threads=1 if workers > 1 else 2)
        stack.flags.append("--exact")  # a text is then what it is, whatever else runs
        stack.env = {
            "DJANGO_SETTINGS_MODULE": "tests.chaos.settings",
            lossy.SHARE: str(drop),
            lossy.SEED: str(plan.seed),
        }
        self._stack, self._processes = stack, Processes(stack, workers)
        self._faults = Faults(self._processes)
        self._database = folder / "db.sqlite3"
        self._tally = Tally(requests=len(plan.requests))
        self._texts: dict[Question, list[str]] = {}
        self._sessions: list[Session] = []
        self._pages: list[tuple[PageClient, str]] = []  # whose answer is to be there at the end
        self._n_begun = 0
        self._news = asyncio.Event()  # one more has begun

    async def run(self) -> Tally:
        """Raises RuntimeError when the stack does not start, or does not answer while nothing disturbs it."""
        began = time.monotonic()
        try:
            await self._processes.start()
            for name in PEOPLE:
                session = await Session.sign_in(self._stack.port, name, PASSWORD, self._database)
                self._sessions.append(session)
            await self._ask_undisturbed()
            self._say(f"{len(self._texts)} texts known after {time.monotonic() - began:.0f} s")
            breaking = asyncio.create_task(self._break())
            waiting = list(reversed(self._plan.requests))
            await asyncio.gather(*(self._be_clients(waiting) for _ in range(self._n_clients)))
            breaking.cancel()
            await asyncio.wait([breaking])
            if not breaking.cancelled():
                breaking.result()
            await self._faults.end()
            self._say(f"all are over after {time.monotonic() - began:.0f} s")
            await self._settle()
            await self._look_again()
        finally:
            await self._faults.wake()
            await self._processes.stop()
        return self._tally

    # --- clients --------------------------------------------------------------------------------------

    def _client(self, request: Request) -> Client:
        expected = self._texts.get(request.question)
        if request.question.endpoint != "page":
            return ApiClient(self._stack.port, request, expected, self._tally)
        client = PageClient(self._stack.port, request, expected, self._tally)
        client.session = self._sessions[request.number % len(self._sessions)]
        return client

    async def _ask_undisturbed(self) -> None:
        """Each question once, alone."""
        for question in self._plan.questions:
            client = self._client(Request(0, question, True, "stays", 0, 0.0))
            outcome = await client.run()
            if outcome.end != "identical":
                raise RuntimeError(f"{question} was not answered undisturbed: {outcome}")
            self._texts[question] = client.texts

    async def _be_clients(self, waiting: list[Request]) -> None:
        while waiting:
            request = waiting.pop()
            self._n_begun += 1
            self._news.set()
            for _ in range(ATTEMPTS):
                outcome = await self._be_client(request)
                if outcome.end != "failed":
                    self._tally.answered += outcome.end in ("identical", "cancelled")
                    break
                await asyncio.sleep(AGAIN)

    async def _be_client(self, request: Request) -> Outcome:
        client = self._client(request)
        outcome = await client.run()
        about = _about(request)
        if outcome.end in ("different", "lost", "failed"):
            self._say(f"{about} {outcome.generation}: {outcome.end}: {outcome.reason}")
            if outcome.end == "lost":
                self._processes.show_stacks()
        if isinstance(client, PageClient) and outcome.end == "identical":
            self._pages.append((client, about))
        else:
            self._tally.add(outcome, about)
        return outcome

    # --- faults ---------------------------------------------------------------------------------------

    async def _break(self) -> None:
        began = time.monotonic()
        for fault in self._plan.faults:
            while self._n_begun < fault.after:
                self._news.clear()
                await self._news.wait()
            await asyncio.sleep(fault.delay)
            done = await self._faults.do(fault)
            self._tally.faults[fault.kind if done else f"{fault.kind} (not there)"] += 1
            at = time.monotonic() - began
            self._say(f"{at:6.1f} s  {self._n_begun:4} begun  {fault.kind}{'' if done else ': not there'}")

    # --- the end --------------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """Wait until the stack holds nothing more of anybody; what it does not let go of is counted."""
        deadline = time.monotonic() + SETTLE
        while time.monotonic() < deadline:
            try:
                found = await self._held()
                self._tally.left_behind = found
                if not any(found.values()) and await self._is_healthy():
                    break
            except (RedisError, OSError, sqlite3.Error) as error:
                self._say(f"not settled yet: {error}")
            await asyncio.sleep(0.5)
        self._tally.left_behind["unhealthy"] = int(not await self._is_healthy())
        query = "SELECT COUNT(DISTINCT generation_id) FROM inference_preemption WHERE cause = 'worker'"
        self._tally.taken_over = self._count(query)

    async def _is_healthy(self) -> bool:
        try:
            async with await Exchange.open(self._stack.port, "GET", "/health") as answer:
                return answer.status == 200
        except Cut:
            return False

    async def _held(self) -> dict[str, int]:
        async with self._processes.redis() as client:
            pictures: list[dict[str, Any]] = [
                json.loads(raw)
                for key in await client.keys(f"{PREFIX}worker:*")
                if await client.type(key) == b"string" and (raw := await client.get(key))
            ]
            jobs = await client.xlen(JOBS)
        over = ", ".join(f"'{state}'" for state in Generation.OVER)
        return {
            "jobs": jobs,
            "chats": sum(len(p["parked"]) + len(p["queue"]) + _n_busy(p["slots"]) for p in pictures),
            "rows without an end": self._count(
                f"SELECT COUNT(*) FROM inference_generation WHERE state NOT IN ({over})"
            ),
        }

    def _count(self, query: str) -> int:
        with sqlite3.connect(f"file:{self._database}?mode=ro", uri=True, timeout=20) as connection:
            return int(connection.execute(query).fetchone()[0])

    async def _look_again(self) -> None:
        """What somebody finds who comes back to the page later."""
        for client, about in self._pages:
            outcome = await client.again()
            if outcome.end == "failed" and client.request.manner != "leaves":
                outcome = outcome._replace(end="lost", reason=f"it was there, and is gone: {outcome.reason}")
            self._tally.add(outcome, f"{about}, later")


def _n_busy(slots: list[dict[str, Any]]) -> int:
    return sum(slot["state"] != "idle" for slot in slots)


def _about(request: Request) -> str:
    q = request.question
    how = "stream" if request.stream else "at once"
    return f"request {request.number} ({q.endpoint}, {how}, {request.manner}, {q.n_tokens} tokens x {q.n})"
