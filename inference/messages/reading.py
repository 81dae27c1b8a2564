"""Messages as JSON: their fields, and those that another process wrote, checked before they are believed."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints


def from_json(raw: str | bytes) -> Any:
    """Raises ValueError for what is no JSON."""
    try:
        return json.loads(raw)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def as_dict(message: Any) -> dict[str, Any]:
    """Its fields by name, as they are: `dataclasses.asdict` would copy each of a prompt's tokens."""
    return {name: getattr(message, name) for name in message.__slots__}


def read(cls: type[Any], values: Any) -> Any:
    """An instance made of fields that came as JSON. Raises ValueError when they are not its own."""
    if not isinstance(values, dict):
        raise ValueError(f"no {cls.__name__}: {values!r:.80}")
    wanted = _FIELDS.get(cls) or _FIELDS.setdefault(cls, _fields(cls))
    for name, value in values.items():
        if name not in wanted or not isinstance(value, wanted[name]):
            raise ValueError(f"no {name} of a {cls.__name__}: {value!r:.80}")
    try:
        return cls(**values)
    except TypeError as error:  # one is missing
        raise ValueError(str(error)) from error


_FIELDS: dict[type[Any], dict[str, tuple[type, ...]]] = {}


def _fields(cls: type[Any]) -> dict[str, tuple[type, ...]]:
    """The types that each field of a message may have in JSON."""
    found: dict[str, tuple[type, ...]] = {}
    hints = get_type_hints(cls)
    for one in fields(cls):
        hint = hints[one.name]
        if get_origin(hint) is Literal:
            hint = type(get_args(hint)[0])
        hint = get_origin(hint) or hint
        found[one.name] = (float, int) if hint is float else (hint,)
    return found
