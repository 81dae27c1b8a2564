"""Plays a worker that writes a given answer into a chat, through the real broker. In a stack's environment:

    manage.py shell --no-imports -c "from tests.live import writer; writer.main()"

It reads {"user", "text", "seconds"} on its standard input, answers with a line that has the chat's number,
waits until a page follows, and writes the text within so many seconds, or until it is told to stop. With
{"open": true} only a stop ends it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.e2e.stack import ROOT, Stack

FLUSH_S = 0.05
TOKEN = 4  # characters
COMMAND = "from tests.live import writer; writer.main()"


@contextmanager
def answer(stack: Stack, text: str, seconds: float, **more: Any) -> Iterator[str]:
    """The path of a chat of grace's that is being answered with this text."""
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", COMMAND]
    order = json.dumps({"user": "grace", "text": text, "seconds": seconds, **more})
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env=stack.environ(), **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(order + "\n")
        process.stdin.flush()
        try:
            yield f"/chats/{process.stdout.readline().strip()}/"
        finally:
            process.kill()


def main() -> None:
    order = json.loads(sys.stdin.readline())
    chat, generation = _rows(order["user"])
    asyncio.run(_write(chat, generation, order))


def _rows(name: str) -> tuple[int, str]:
    from django.contrib.auth.models import User

    from inference.models import Chat, Generation

    user = User.objects.get(username=name)
    chat = Chat.objects.create(user=user, title="painting")
    chat.add("user", "Write.")
    message = chat.add("assistant", "")
    id = uuid.uuid4()
    Generation.objects.create(pk=id, user=user, message=message, api="chat", state="queued")
    return chat.pk, id.hex


async def _write(chat: int, id: str, order: dict[str, Any]) -> None:
    from inference.broker.control import ControlReader
    from inference.broker.publisher import Publisher
    from inference.messages import Accepted, Event, Finished, Started, Timings, Token

    publisher, reader = Publisher("writer"), ControlReader()
    seq = 0

    async def publish(*events: Event) -> None:
        nonlocal seq
        await publisher.publish([(id, seq + i, event) for i, event in enumerate(events, 1)])
        seq += len(events)

    stopped, followed = asyncio.Event(), asyncio.Event()

    async def listen() -> None:
        while True:
            for command in await reader.read():
                if command.id == id and command.kind == "follow":
                    publisher.route(id, command.group)
                    followed.set()
                elif command.id == id and command.kind == "cancel":
                    stopped.set()

    await publish(Accepted(3, 1, -1))
    print(chat, flush=True)
    ear = asyncio.create_task(listen())
    await followed.wait()
    await publish(Started(0))
    text, seconds = order["text"], order["seconds"]
    began, at = time.monotonic(), 0
    while at < len(text) and not stopped.is_set():
        await asyncio.sleep(FLUSH_S)
        share = min(1.0, (time.monotonic() - began) / seconds) if seconds else 1.0
        upto = min(len(text), int(len(text) * share))
        if upto > at:
            await publish(*(Token(0, text[i : min(i + TOKEN, upto)]) for i in range(at, upto, TOKEN)))
        at = upto
    if order.get("open"):
        await stopped.wait()
    reason: Any = "cancelled" if stopped.is_set() else "eos"
    await publish(Finished(reason, "", "", 3, at // TOKEN, False, 0, Timings(), 0, 0.0, 0.1))
    ear.cancel()
