"""Both ends of the API, played by a test: a client that speaks ASGI, and a worker on the real broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from django.contrib.auth.models import User

from inference.broker.control import Command, ControlReader
from inference.broker.job_reader import JobReader
from inference.broker.publisher import Publisher
from inference.messages import TERMINAL, Answer, Event, Job
from inference.models import ApiKey
from inference.tasks import end
from project.asgi import application
from tests.broker.play import show


class Client:
    """One request to an ASGI application."""

    def __init__(
        self, method: str, path: str, body: Any = None, app: Any = application, **headers: str
    ) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.is_complete = False
        self._in: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._news = asyncio.Condition()
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        self._in.put_nowait({"type": "http.request", "body": data[:10], "more_body": True})
        self._in.put_nowait({"type": "http.request", "body": data[10:], "more_body": False})
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [
                (name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()
            ],
        }
        self.task = asyncio.create_task(app(scope, self._in.get, self._sent))

    async def _sent(self, message: dict[str, Any]) -> None:
        async with self._news:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            else:
                self.body += message["body"]
                self.is_complete = not message.get("more_body", False)
            self._news.notify_all()

    async def hears(self, text: str, times: int = 1) -> None:
        """Wait until the body holds this, so many times."""
        async with self._news:
            await self._news.wait_for(lambda: self.body.count(text.encode()) >= times)

    async def ends(self) -> Client:
        """Wait until the answer is complete."""
        await self.task
        assert self.is_complete
        return self

    async def leaves(self) -> None:
        self._in.put_nowait({"type": "http.disconnect"})
        await self.task

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def comments(self) -> list[str]:
        return [line for line in self.body.decode().splitlines() if line.startswith(":")]

    @property
    def chunks(self) -> list[Any]:
        lines = [line[6:] for line in self.body.decode().splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in lines if line != "[DONE]"]


async def fetch(method: str, path: str, body: Any = None, **headers: str) -> Client:
    """A request and its whole answer."""
    return await Client(method, path, body, **headers).ends()


class Worker:
    """Takes jobs and says what the test tells it to say."""

    def __init__(self) -> None:
        self._jobs, self._control = JobReader("w1"), ControlReader()
        self._publisher = Publisher("w1")
        self._said: dict[str, int] = {}
        self._going: dict[str, int] = {}  # how many of a job's generations are not over

    async def takes(self) -> Job:
        jobs: list[Job] = []
        while not jobs:
            jobs = await self._jobs.read()
        (job,) = jobs
        self._going[job.id] = len(job.generations())
        for id in job.generations():
            self._publisher.route(id, job.reply_to)
            self._said[id] = 0
        return job

    async def says(self, job: Job, *events: Event) -> None:
        """One message for each event, so that their order in time is the one of the test."""
        await self.says_of(job, 0, *events)

    async def says_of(self, job: Job, index: int, *events: Event) -> None:
        """The same of one sibling."""
        id = job.generations()[index]
        for event in events:
            self._said[id] += 1
            self._going[job.id] -= isinstance(event, TERMINAL)
            over = [] if self._going[job.id] else [job.id]
            await self._publisher.publish([(id, self._said[id], event)], over)

    def said(self, job: Job, *numbers: int) -> None:
        """What the logs of its generations hold already."""
        self._said |= dict(zip(job.generations(), numbers, strict=True))

    async def answers(self, data: dict[str, Any]) -> Command:
        """Give the next command that wants an answer this one."""
        while True:
            for command in await self._control.read():
                if command.reply:
                    await self._publisher.publish([(command.reply, 1, Answer(data))])
                    return command

    async def is_told_to_cancel(self, job: Job) -> None:
        while Command("cancel", job.id) not in await self._control.read():
            pass


@asynccontextmanager
async def working(**more: Any) -> AsyncIterator[Worker]:
    """A live worker."""

    async def live() -> None:
        while True:
            await show(**more)
            await asyncio.sleep(1)

    await show(**more)
    living = asyncio.create_task(live())
    try:
        yield Worker()
    finally:
        await end([living])


def create_key(name: str, owner: User | None = None, **bounds: Any) -> str:
    """A new API key, in plain text."""
    return ApiKey.objects.create_key(name, owner, **bounds)[1]
