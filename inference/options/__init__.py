"""llama-server's flags and environment variables, read into a frozen `Options`. Standard library only."""

from __future__ import annotations

from .command_line import VERSION, parse
from .errors import HelpWanted, OptionError
from .flags import FLAGS
from .options import DEFAULT_DATA_DIR, Options
from .values import CACHE_TYPES

__all__ = [
    "CACHE_TYPES",
    "DEFAULT_DATA_DIR",
    "FLAGS",
    "VERSION",
    "HelpWanted",
    "OptionError",
    "Options",
    "parse",
]
