"""How reading the options ends when it does not end with `Options`."""

from __future__ import annotations


class OptionError(ValueError):
    """A flag or variable that cannot be used; the message is one line for the person who gave it."""


class HelpWanted(Exception):
    """`--help` or `--version` was given; the message is the text to print."""
