"""The model's chat template, run in a process of its own that can be stopped."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from .template_process import CPU_S

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)  # for a model that brings no template
LONGEST_SOURCE = 1 << 18  # characters; it is shown with the worker's live state
MOST = 1 << 28  # bytes of an answer; its own bound is lower
PATIENCE = 60.0  # seconds for an answer; CPU_S of them at most are spent on it
PROGRAM = Path(__file__).with_name("template_process.py")


class TemplateFailure(Exception):
    """The template could not be parsed, or refused these messages; the message says why."""


class ChatTemplate:
    """Renders messages as the model was trained to read them, with bounds on time, memory and output.

    May be used from any thread. Raises TemplateFailure.
    """

    def __init__(self, source: str, *, bos: str, eos: str) -> None:
        if len(source) > LONGEST_SOURCE:
            raise TemplateFailure(f"the model's chat template is longer than {LONGEST_SOURCE} characters")
        self.source = source or CHATML
        self._given = {"source": self.source, "bos": bos, "eos": eos}
        self._turn = threading.Lock()
        self._process: _Process | None = None
        with self._turn:
            self._start()

    def render(self, messages: Sequence[dict[str, Any]], at: float = 0.0) -> str:
        """The prompt for these messages, ending where the assistant's answer begins. `at` is what time it is
        for the template, in seconds of the epoch; 0: now. It waits for the other process: call it in a
        thread that may."""
        with self._turn:
            process = self._process or self._start()
            try:
                return process.ask({"messages": messages, "at": at or time.time()}, "the chat template")
            finally:
                if not process.is_alive:
                    self._process = None

    def _start(self) -> _Process:
        process = _Process()
        process.ask(self._given, "the model's chat template")
        self._process = process
        return process


class _Process:
    """One life of the process. It ends with this object, or with what it was asked."""

    def __init__(self) -> None:
        ours, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(PROGRAM), str(its.fileno())],
                pass_fds=[its.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self._connection = Connection(ours.detach())
        self.is_alive = True

    def ask(self, request: Any, subject: str) -> str:
        """The text that it answers. Raises TemplateFailure, about `subject`."""
        try:
            self._connection.send_bytes(json.dumps(request).encode())
            if not self._connection.poll(PATIENCE):
                raise TimeoutError
            answer: dict[str, str] = json.loads(self._connection.recv_bytes(MOST))
        except (EOFError, OSError, ValueError):
            raise TemplateFailure(f"{subject} {self._end()}") from None
        if "error" in answer:
            raise TemplateFailure(f"{subject} {answer['error']}")
        return answer["text"]

    def _end(self) -> str:
        """End it; what became of it."""
        self.is_alive = False
        self._connection.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)  # on its way out already, unless it hangs
        self._process.kill()
        code = self._process.wait()
        if code in (-signal.SIGPROF, -signal.SIGKILL):
            return f"takes more than {CPU_S:g} s"
        return "breaks the process in which it runs"
