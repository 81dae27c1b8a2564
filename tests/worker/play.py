"""Real worker processes that a test starts and kills, and the clients of their generations."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from inference.broker import jobs
from inference.broker.connect import async_client
from inference.broker.hub import Follower, hub
from inference.broker.keys import INCARNATIONS, LEASE
from inference.messages import (
    TERMINAL,
    Event,
    Failed,
    Finished,
    GenerationRequest,
    Job,
    Preempted,
    Resumed,
    SamplingParams,
    Token,
)
from tests.served import ROOT

TIED = ROOT / "inference/serve/tied.py"
FLAGS = ["--ctx-size", "1024", "--parallel", "3", "--threads", "1", "--exact", "--rotate-after", "0"]


GREEDY = SamplingParams(temperature=0, ignore_eos=True)


def sampled(seed: int) -> SamplingParams:
    return SamplingParams(temperature=1.1, seed=seed, repeat_penalty=1.3, ignore_eos=True)


class WorkerProcess:
    """One worker. `keep()` starts it again when it dies, as its supervisor does."""

    def __init__(self, name: str, *flags: str) -> None:
        self.name, self._flags = name, flags
        self.deaths = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, stops_with: int = 0) -> None:
        """It computes nothing more once so many chats have three tokens each; 0: it goes on."""
        command = [sys.executable, str(TIED), str(os.getpid()), sys.executable, "-m", "tests.worker.mortal"]
        environ = {**os.environ, "BERTH_WORKER_ID": self.name, "MORTAL_STOPS_WITH": str(stops_with)}
        self._process = subprocess.Popen([*command, *FLAGS, *self._flags], cwd=ROOT, env=environ)

    def send(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """Returns when it is gone."""
        self.send(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    async def ended(self) -> int:
        assert self._process is not None
        while (code := self._process.poll()) is None:  # noqa: ASYNC110 - another process's state
            await asyncio.sleep(0.02)
        return code

    async def keep(self) -> None:
        while True:
            await self.ended()
            self.deaths += 1
            self.start()

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()

    async def token(self) -> str:
        """Of its incarnation, once it has one."""
        while True:
            known: Any = await async_client().hgetall(INCARNATIONS)
            for token, name in known.items():
                if name.decode() == self.name:
                    return str(token.decode())
            await asyncio.sleep(0.02)

    async def silence(self, heir: WorkerProcess) -> None:
        """It has not been heard of for longer than its lease lasts, and its heir has been all the time."""
        token, other = await self.token(), await heir.token()
        await async_client().set(LEASE + other, 0, ex=60)
        await async_client().delete(LEASE + token)


class Clients:
    """`async with Clients() as clients`: who asks for generations and follows them."""

    async def __aenter__(self) -> Clients:
        self._stack = await AsyncExitStack().__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.__aexit__(*error)

    async def ask(self, *prompts: list[int], n: int, sampling: SamplingParams = GREEDY) -> list[Client]:
        """Submit one job; one client for each prompt."""
        request = GenerationRequest(prompt=tuple(prompts[0]), sampling=sampling, max_tokens=n, stream=True)
        if len(prompts) > 1:
            request = replace(request, prompt=None, prompts=tuple(map(tuple, prompts)))
        job = Job(uuid.uuid4().hex, "generate", request.to_dict(), hub().group)
        clients = [
            Client(await self._stack.enter_async_context(hub().follow(id, fresh=True)))
            for id in job.generations()
        ]
        await jobs.submit(job, None)
        return clients


class Client:
    """Follows one generation; `events` is all that has been heard of it, each once and in order."""

    def __init__(self, follower: Follower) -> None:
        self.id = follower.id
        self.events: list[Event] = []
        self._follower = follower

    async def until(self, kind: type[Event] | tuple[type[Event], ...], n: int = 1) -> Event:
        """The n-th event of that kind from now on."""
        while True:
            found = await self._follower.next(asyncio.get_running_loop().time() + 0.5)
            if found is None:
                continue
            number, event = found
            self.events.append(event)
            assert number == len(self.events)
            if isinstance(event, kind):
                n -= 1
                if not n:
                    return event
            assert not isinstance(event, TERMINAL), event

    async def end(self) -> Finished | Failed:
        event = await self.until((Finished, Failed))
        assert isinstance(event, Finished | Failed)
        return event

    @property
    def text(self) -> str:
        return "".join(event.text for event in self.events if isinstance(event, Token | Finished))

    @property
    def parks(self) -> list[str]:
        """Causes of parks, and "resumed"."""
        parks = [event for event in self.events if isinstance(event, Preempted | Resumed)]
        return [event.cause if isinstance(event, Preempted) else "resumed" for event in parks]
