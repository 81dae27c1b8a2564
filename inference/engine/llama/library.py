"""The llama.cpp library as it is loaded, and what it says went wrong."""

from __future__ import annotations

import os

# Read when libgomp is loaded. Its default is to spin so long at each barrier that two busy processes on
# the same cores bring each other to a stop; this many rounds cost nothing when the cores are ours alone.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
os.environ.setdefault("GGML_NO_BACKTRACE", "1")  # a debugger would take seconds to tell users nothing

import llama_cpp as lib

__all__ = ["ModelError", "forget_errors", "last_error", "lib", "start"]


class ModelError(Exception):
    """The model, or a context over it, could not be made; the message says why in one line."""


_errors: list[str] = []


@lib.llama_log_callback  # type: ignore[untyped-decorator]
def _log(level: int, text: bytes, _user_data: object) -> None:
    """Keep llama.cpp's errors for our own messages and drop the rest."""
    if level == 4:
        _errors.append(text.decode("utf-8", "replace").strip())
        del _errors[:-20]


def start() -> None:
    """Make the library ready; as often as one likes."""
    lib.llama_log_set(_log, None)
    lib.llama_backend_init()


def forget_errors() -> None:
    _errors.clear()


def last_error(default: str) -> str:
    """What llama.cpp gave as the reason of the failure since `forget_errors`, else `default`."""
    reason = next((line for line in _errors if line), default)
    return reason.split(": ", 1)[1] if reason.startswith("llama_") and ": " in reason else reason
