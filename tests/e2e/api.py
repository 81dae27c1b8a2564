"""An API client that shows everything, SSE comments too."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from .stack import Stack

KNIGHT = "Once upon a time there was a brave knight who"
FOX = "The quick brown fox jumps over the lazy dog and"
NOTICES = (": preempted", ": resumed")
FIRST = {"priority": -100}  # it is not parked for those who wait before these have waited ten minutes


class Reply:
    """One request and its reply, read line by line as it comes. `with Reply(port, path, body) as r:`"""

    def __init__(
        self,
        port: int,
        path: str,
        body: Any = None,
        *,
        method: str = "",
        headers: dict[str, str] | None = None,
        raw: bytes | None = None,
    ) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        payload = raw if raw is not None else None if body is None else json.dumps(body).encode()
        self._connection.request(
            method or ("GET" if payload is None else "POST"),
            path,
            payload,
            {"Content-Type": "application/json", **(headers or {})},
        )
        self._response = self._connection.getresponse()
        self.status = self._response.status
        self.headers = {name.lower(): value for name, value in self._response.getheaders()}
        self.lines: list[str] = []

    def __enter__(self) -> Reply:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()

    def leave(self) -> None:
        """Hang up, in whatever state it is."""
        self._response.close()
        self._connection.close()

    def __iter__(self) -> Iterator[str]:
        while line := self._response.readline():
            text = line.decode().rstrip("\n")
            if text:
                self.lines.append(text)
                yield text

    def wait_for(self, start: str) -> str:
        """The next line that begins so."""
        for line in self:
            if line.startswith(start):
                return line
        raise AssertionError(f"the stream ended without {start!r}: {self.lines[-5:]}")

    def read_until_it_breaks(self) -> Reply:
        """Everything up to the end of a stream whose server died."""
        with contextlib.suppress(http.client.HTTPException, OSError):
            self.read()
        return self

    @property
    def last_id(self) -> str:
        """The id of the last event that came whole."""
        data = max(at for at, line in enumerate(self.lines) if line.startswith("data:"))
        return [line[4:] for line in self.lines[:data] if line.startswith("id: ")][-1]

    def read(self) -> Reply:
        """Everything that is left."""
        for _ in self:
            pass
        return self

    def json(self) -> Any:
        return json.loads(self._response.read())

    @property
    def notices(self) -> list[str]:
        return [line for line in self.lines if line.startswith(NOTICES)]

    @property
    def objects(self) -> list[dict[str, Any]]:
        data = [line[6:] for line in self.lines if line.startswith("data: ")]
        return [json.loads(line) for line in data if line != "[DONE]"]

    @property
    def text(self) -> str:
        return "".join(_shown(chunk) for chunk in self.objects)


def _shown(chunk: dict[str, Any]) -> str:
    if "content" in chunk:
        return chunk["content"] or ""
    return "".join((c.get("delta") or {}).get("content") or c.get("text") or "" for c in chunk["choices"])


GREEDY = {"ignore_eos": True, "temperature": 0, "seed": 42, "stream": True}
ENDPOINTS = ("/completion", "/v1/completions", "/v1/chat/completions")


def body(path: str, prompt: Any, n: int, /, **fields: Any) -> dict[str, Any]:
    """A request of exactly `n` tokens in the form of the endpoint; other fields take precedence."""
    if "chat" in path:
        return {"messages": [{"role": "user", "content": prompt}], "max_tokens": n, **GREEDY, **fields}
    return {"prompt": prompt, "n_predict" if path == "/completion" else "max_tokens": n, **GREEDY, **fields}


def without_ids_and_times(line: str) -> str:
    line = re.sub(r"^id: \w+", "id: ", line)
    line = re.sub(r'"(id|created|id_slot)":("[^"]*"|\d+)', r'"\1":0', line)
    return re.sub(r'"timings":\{[^}]*\}', '"timings":{}', line)


def slots(stack: Stack) -> list[dict[str, Any]]:
    return Reply(stack.port, "/slots").json()  # type: ignore[no-any-return]


def until(condition: Callable[[], bool]) -> None:
    """Ask again and again, for as long as a test may take."""
    give_up = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < give_up


def is_idle(stack: Stack) -> bool:
    """Nobody is in a slot."""
    return not any(slot["is_processing"] for slot in slots(stack))


def wait_until_idle(stack: Stack) -> None:
    until(lambda: is_idle(stack))
