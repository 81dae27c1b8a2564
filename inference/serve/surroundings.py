"""What a process finds when it is started, made such that it can be worked with."""

from __future__ import annotations

import contextlib
import os
import resource
import sys


def open_standard_streams() -> None:
    """Stdin, stdout and stderr are open, and take every character.

    Who was started without one of them would give its number to the next file that is opened, and what is
    printed would go there. A terminal that is not UTF-8 shows what it lacks as an escape.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
            setattr(sys, name, open(number, mode, encoding="utf-8"))  # noqa: SIM115 - as long as the process
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")


def allow_many_files() -> None:
    """Raise the limit of open files to what this user may have: each stream is one. The usual soft limit is
    there for programs that use `select`."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(OSError, ValueError):  # a kernel that takes less than it said
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
