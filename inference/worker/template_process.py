"""The process in which a chat template runs: a program of the model's author, which nobody has read.

Jinja's sandbox keeps it from reaching out, and the kernel keeps it small: a loop without end or a string that
doubles itself in a line of C code cannot be stopped from inside, but its process can. It is started with a
socket's descriptor, imports nothing of the product, and ends when the socket closes.

What it is sent is JSON: `{"source", "bos", "eos"}` once, then `{"messages", "at"}` each time. Each is
answered by `{"text"}` or `{"error"}`; after an error of the first it ends.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from collections.abc import Callable
from datetime import datetime
from multiprocessing.connection import Connection
from typing import Any

from jinja2 import Template
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

CPU_S = 1.0  # of one rendering; the kernel ends the process then
MEMORY = 1 << 30  # bytes of address space
LONGEST = 1 << 20  # characters of a prompt, and FACTOR times those of the messages
FACTOR = 4


class Refusal(Exception):
    """The template refuses the messages; the reason is its own."""


def main(descriptor: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the worker, whose end is ours
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    with Connection(descriptor) as worker:
        try:
            template, answer = _within_limits(_compile, worker.recv_bytes())
            worker.send_bytes(json.dumps(answer).encode())
            while template is not None:
                answer = _within_limits(_render, template, worker.recv_bytes())
                worker.send_bytes(json.dumps(answer).encode())
        except (EOFError, OSError):
            pass


def _within_limits(work: Callable[..., Any], *arguments: object) -> Any:
    signal.setitimer(signal.ITIMER_PROF, CPU_S)  # nobody handles SIGPROF: it ends the process
    try:
        return work(*arguments)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _compile(request: bytes) -> tuple[Template | None, dict[str, str]]:
    given = json.loads(request)
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.globals |= {
        "raise_exception": _refuse,
        "bos_token": given["bos"],
        "eos_token": given["eos"],
    }
    try:
        return environment.from_string(given["source"]), {"text": ""}
    except MemoryError:
        return None, {"error": "takes too much memory"}
    except Exception as error:  # what Jinja makes of it, or Python of that
        return None, {"error": f"is broken: {_named(error)}"}


def _render(template: Template, request: bytes) -> dict[str, str]:
    given = json.loads(request)
    now = datetime.fromtimestamp(given["at"])
    limit = LONGEST + FACTOR * len(request)
    parts, size = [], 0
    try:
        for part in template.generate(
            messages=given["messages"], add_generation_prompt=True, strftime_now=now.strftime
        ):
            size += len(part)
            if size > limit:
                return {"error": f"makes a prompt of more than {limit} characters of these messages"}
            parts.append(part)
        return {"text": "".join(parts)}
    except Refusal as refusal:
        return {"error": f"refuses these messages: {refusal}"}
    except SecurityError as error:
        return {"error": f"did something it may not: {_named(error)}"}
    except MemoryError:
        return {"error": "takes too much memory for these messages"}
    except Exception as error:  # a template is a program: anything can come out
        return {"error": f"cannot render these messages: {_named(error)}"}


def _named(error: Exception) -> str:
    return f"{error}"[:500] or type(error).__name__


def _refuse(message: object) -> None:
    raise Refusal(f"{message}"[:500])


if __name__ == "__main__":
    main(int(sys.argv[1]))
