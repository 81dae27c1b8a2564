"""Where a value comes from: a flag, or else its variable."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from .errors import OptionError
from .flags import FLAGS, Flag

NO_SLOTS = "LLAMA_ARG_NO_ENDPOINT_SLOTS"  # whatever it says


def chosen(given: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """The fields of `Options` that flags (`given`, by `Flag.dest`) or variables set. Raises OptionError.

    A flag beats its variable; keys of all sources add up.
    """
    values: dict[str, Any] = {}
    keys: list[str] = []
    for flag in FLAGS:
        if flag.dest in given:
            value = given[flag.dest]
        elif flag.env and (text := environ.get(flag.env)):
            value = _from_variable(flag, text)
        elif flag.env == "LLAMA_ARG_ENDPOINT_SLOTS" and NO_SLOTS in environ:
            value = False
        else:
            continue
        if flag.field == "api_keys":
            keys += value
        else:
            values[flag.field] = value
    return {**values, "api_keys": tuple(dict.fromkeys(keys))}


def _from_variable(flag: Flag, text: str) -> Any:
    try:
        return flag.read(text)
    except argparse.ArgumentTypeError as error:
        raise OptionError(f"{flag.env}: {error}") from None
