"""A command line -> `Options`, or the help."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from .errors import HelpWanted, OptionError
from .flags import FLAGS
from .ignored import NO_VALUE, ONE_VALUE, OPTIONAL_VALUE, TWO_VALUES
from .options import Options
from .sources import NO_SLOTS, chosen
from .values import boolean

VERSION = "0.1.0"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionError(message.removeprefix("argument "))


class _Ignore(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        ignored: list[str] = namespace.__dict__.setdefault("ignored", [])
        if option_string and option_string not in ignored:
            ignored.append(option_string)


class _Tell(argparse.Action):
    """Raises HelpWanted with `const`, or with the parser's help."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        raise HelpWanted(self.const or parser.format_help())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add every flag. What is not given leaves no attribute behind, so that a variable can speak."""
    for flag in FLAGS:
        about = f"{flag.help} [{flag.env}]" if flag.env else flag.help
        common: dict[str, Any] = {"dest": flag.dest, "help": about, "default": argparse.SUPPRESS}
        if flag.read is boolean:
            common |= {"action": "store_false" if "--no-" in flag.names else "store_true"}
        elif flag.field == "api_keys":
            common |= {"action": "extend", "type": flag.read, "metavar": flag.metavar}
        else:
            common |= {"type": flag.read, "metavar": flag.metavar}
        if flag.field == "flash_attn":
            common |= {"nargs": "?", "const": "on"}
        parser.add_argument(*flag.names.split(), **common)
    for names, nargs in ((NO_VALUE, 0), (ONE_VALUE, None), (OPTIONAL_VALUE, "?"), (TWO_VALUES, 2)):
        for name in names.split():
            parser.add_argument(
                name, action=_Ignore, nargs=nargs, dest="ignored", default=argparse.SUPPRESS,
                help=argparse.SUPPRESS,
            )  # fmt: skip


def parser(command: str, description: str = "") -> argparse.ArgumentParser:
    """The parser of one of `manage.py`'s commands. It raises OptionError and HelpWanted, and never exits."""
    made = _Parser(
        prog=f"manage.py {command}",
        usage=f"manage.py {command} [options]",
        description=description,
        epilog="A flag beats its variable, which stands in brackets. llama-server's other flags are accepted "
        "and ignored, with a line that says so.",
        allow_abbrev=False,
        add_help=False,
    )
    add_arguments(made)
    made.add_argument("-h", "--help", "--usage", action=_Tell, nargs=0, help="show this and exit")
    made.add_argument(
        "--version", action=_Tell, nargs=0, const=f"Berth {VERSION}\n", help="show the version and exit"
    )
    return made


def parse(
    argv: Sequence[str],
    environ: Mapping[str, str],
    command: str = "serve",
    description: str = "",
    names: list[str] | None = None,
) -> Options:
    """The options that a command line and an environment ask for. `names` takes what is not a flag.

    Flags and variables that mean nothing here are each named in one line on stderr. Raises OptionError
    for an unknown flag or a bad value, HelpWanted for `--help` and `--version`.
    """
    made = parser(command, description)
    known = made._option_string_actions
    for argument in argv:
        name = argument.split("=")[0]
        if name.startswith("-") and name not in known and not re.fullmatch(r"-\d+|-\d*\.\d+", name):
            near = difflib.get_close_matches(name, known, 1, 0.75)
            hint = f", did you mean {near[0]}?" if near else f"; manage.py {command} --help lists the flags"
            raise OptionError(f"unknown flag {name}{hint}")
    space, rest = made.parse_known_args(list(argv))
    if names is not None:
        names += rest
    elif rest:
        raise OptionError(f"unexpected argument '{rest[0]}'; manage.py {command} --help lists the flags")
    given = vars(space)
    options = Options(**chosen(given, environ)).checked()
    variables = {flag.env for flag in FLAGS} | {NO_SLOTS}
    unknown = sorted(name for name in environ if name.startswith("LLAMA_ARG_") and name not in variables)
    for name in (*given.get("ignored", ()), *unknown):
        print(f"{name} has no meaning here and is ignored", file=sys.stderr, flush=True)
    return options
