"""The monitor's WebSocket, played by a test, and pieces of what it sends: made up, since a state that lasts
for milliseconds cannot be waited for."""

from __future__ import annotations

import json
import time
from typing import Any

from playwright.sync_api import Page, WebSocketRoute

from tests.broker.play import picture


def slot(id: int, state: str, owner: str | None = None, **more: Any) -> dict[str, Any]:
    usual: dict[str, Any] = picture()["slots"][0]
    generation = None if owner is None else f"{id:032x}"
    return usual | {"id": id, "state": state, "owner": owner, "generation": generation, **more}


def parked(owner: str, ago: float, **more: Any) -> dict[str, Any]:
    usual = {"generation": owner, "owner": owner, "priority": 0, "held": False, "slot": 0, "cells": 40}
    usual |= {"bytes": 0, "tokens": 40, "method": "swap", "cause": "pressure", "parks": 1}
    return usual | {"since": time.time() - ago, **more}


def queued(owner: str, ago: float, priority: int = 0) -> dict[str, Any]:
    since = time.time() - ago
    return {"generation": owner, "owner": owner, "priority": priority, "since": since, "n_prompt_tokens": 12}


def a_past(now: float, points: list[list[Any]], **more: Any) -> dict[str, Any]:
    usual = {"span": "5m", "whole": True, "lanes": {}, "step": 2, "length": 150, "now": now, "points": points}
    return usual | more


class Feed:
    """A page's line to the server."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.told: list[Any] = []  # what the page has sent
        self._socket: WebSocketRoute | None = None
        page.route_web_socket("**/ws/monitor/", self._open)

    def _open(self, socket: WebSocketRoute) -> None:
        self._socket = socket
        socket.on_message(lambda text: self.told.append(json.loads(text)))

    def send(self, **message: Any) -> None:
        while self._socket is None:
            self.page.wait_for_timeout(10)
        self._socket.send(json.dumps(message))

    def show(self, *workers: dict[str, Any]) -> None:
        self.send(workers=workers, now=time.time())
