"""An answer whose worker is played by the test, for states that cannot be waited for: rows in the database,
and events in its log."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from channels.layers import get_channel_layer
from playwright.sync_api import Page, WebSocketRoute

from inference.broker import log
from inference.broker.keys import CONTROL, event_log
from inference.messages import Accepted, Event, Finished, Timings, encode_event

from .stack import ROOT, Stack

MAKE = """
from django.contrib.auth.models import User
from inference.models import Chat, Generation
chat = Chat.objects.create(user=User.objects.get(username="grace"), title={title!r})
chat.add("user", "Tell me of boats.")
answer = chat.add("assistant")
print(chat.pk, Generation.objects.create(message=answer, user=chat.user, api="chat", stream=True).id.hex)
"""
STOPPED = Finished("cancelled", "", "", 5, 2, False, 0, Timings(), 0, 0.0, 0.1)


def in_django(stack: Stack, code: str) -> str:
    """What the code prints that runs beside the stack, on its data."""
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=stack.environ(), capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Tale:
    """One of grace's answers on its way."""

    def __init__(self, stack: Stack, title: str = "Boats") -> None:
        self._stack = stack
        chat, self.generation = in_django(stack, MAKE.format(title=title)).split()
        self.chat = int(chat)
        self.path = f"/chats/{chat}/"
        self._number = 0
        self.tell(Accepted(400, 1, -1))

    def tell(self, *events: Event) -> None:
        """Let these happen: they are in its log, and whoever follows is told."""
        encoded = [encode_event(event) for event in events]
        self._number += len(events)
        layer: Any = get_channel_layer()
        message = {"type": "generation.events", "events": [(self.generation, self._number, encoded)]}
        with self._stack.redis() as client:
            entry = {"e": log.encode(encoded), "t": int(1000 * time.time())}
            client.xadd(event_log(self.generation), entry, id=f"{self._number}-0")
            commands: Any = client.xrevrange(CONTROL)
            for group in {c[b"group"].decode() for _, c in commands if c[b"id"].decode() == self.generation}:
                client.publish(f"berth:layer__group__{group}", layer.serialize(message))

    def forget(self) -> None:
        """Its chat was never there."""
        delete = f"from inference.models import Chat; Chat.objects.filter(pk={self.chat}).delete()"
        in_django(self._stack, delete)


class PlayedFeed:
    """The WebSocket of a page's chats, played by the test."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._socket: WebSocketRoute | None = None
        page.route_web_socket("**/ws/chats/**", self._open)

    def _open(self, socket: WebSocketRoute) -> None:
        self._socket = socket

    def tell(self, chats: dict[int, dict[str, Any]], *changed: int) -> None:
        """Say what goes on in chats, and which have changed."""
        news = {"chats": chats, "changed": changed, "since": "0-0", "now": time.time()}
        self._opened().send(json.dumps(news))

    def close(self, code: int) -> None:
        self._opened().close(code=code)

    def _opened(self) -> WebSocketRoute:
        while self._socket is None:
            self._page.wait_for_timeout(10)
        return self._socket
