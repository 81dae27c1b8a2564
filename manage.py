#!/usr/bin/env python
"""Berth's commands and Django's. The flags of Berth's are read first: Django's settings need them."""

from __future__ import annotations

import os
import signal
import sys

from inference.options import HelpWanted, OptionError, Options, parse
from inference.serve.surroundings import open_standard_streams

OWN = {
    "serve": "Start everything on this machine: Redis if none is given, one worker and the web server.",
    "web": "Start one web process: the pages, the API and the recorder. It needs Redis and the database.",
    "worker": "Start one worker: it owns the model. It needs Redis and the model file.",
    "redis": "Start the embedded Redis of the data directory in the foreground.",
    "fetch_model": "Fetch smollm2-135m or gemma-3-270m into the data directory, or check a GGUF file.",
}


def prepare(command: str, flags: list[str]) -> list[str]:
    """Leave the options in BERTH_OPTIONS, for this process and its children; what is left of the flags.

    Raises OptionError and HelpWanted.
    """
    if not flags and command != "serve" and "BERTH_OPTIONS" in os.environ:
        return []  # a child of serve
    names: list[str] | None = [] if command == "fetch_model" else None
    options = parse(flags, os.environ, command, OWN[command], names)
    if names and len(names) > 1:
        raise OptionError(f"give one name or path, not {len(names)}")
    try:
        options.data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"--data-dir: cannot make {options.data_dir}: {error.strerror}") from None
    os.environ["BERTH_OPTIONS"] = options.to_json()
    return names or []


def take_data_dir(flags: list[str]) -> list[str]:
    """Obey the `--data-dir` of a command of Django's or of the project's other ones; the other flags."""
    for i, flag in enumerate(flags):
        name, _, value = flag.partition("=")
        if name == "--data-dir":
            given = [value] if "=" in flag else flags[i + 1 : i + 2]
            options = parse(["--data-dir", *given], {}, "serve")
            os.environ["BERTH_DATA_DIR"] = str(options.data_dir)
            return flags[:i] + flags[i + (1 if "=" in flag else 2) :]
    return flags


def main(argv: list[str]) -> None:
    open_standard_streams()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    if argv[1:2] == ["help"] and len(argv) == 3 and argv[2] in OWN:
        argv = [argv[0], argv[2], "--help"]
    command = argv[1] if len(argv) > 1 else "help"
    if command == "serve":  # told to end before it has begun
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: sys.exit(0))
    try:
        if command in OWN:
            argv = [*argv[:2], *prepare(command, argv[2:])]
        else:
            argv = [*argv[:2], *take_data_dir(argv[2:])]
            Options.from_env()
    except HelpWanted as wanted:
        print(wanted, end="")
        return
    except OptionError as error:
        sys.exit(_complain(command, error))
    from django.conf import settings
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        _ = settings.DEBUG  # what is in environment variables is read now
    except ImproperlyConfigured as error:
        sys.exit(_complain(command, error))
    execute_from_command_line(argv)


def _complain(command: str, error: Exception) -> int:
    print(f"manage.py {command}: {error}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main(sys.argv)
