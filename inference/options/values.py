"""What a value may be: its text -> the value, or argparse.ArgumentTypeError with one line about it."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from pathlib import Path

CACHE_TYPES = {  # of the KV cache, and the bits that a value takes
    "f32": 32.0, "f16": 16.0, "bf16": 16.0, "q8_0": 8.5, "q5_1": 6.0, "q5_0": 5.5, "q4_1": 5.0, "q4_0": 4.5,
    "iq4_nl": 4.5,
}  # fmt: skip


def whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number") from None
        if value < low:
            raise argparse.ArgumentTypeError(f"{value} is too small, the least is {low}")
        if value > high:
            raise argparse.ArgumentTypeError(f"{value} is too big, the most is {high}")
        return value

    return read


def cells(text: str) -> int:
    """Of a pool. With fewer llama.cpp breaks down."""
    value = whole(0, 2**31 - 1)(text)
    if 0 < value < 16:
        raise argparse.ArgumentTypeError(f"{value} is too small, the least is 16 (or 0: all that it can)")
    return value


def number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"'{text}' is not a finite number")
    return value


def from_zero(zero_means: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = number(text)
        if value < 0:
            raise argparse.ArgumentTypeError(f"{text} is negative; 0 means {zero_means}")
        return value

    return read


def interval(text: str) -> float:
    value = number(text)
    if value <= 0 and value != -1:
        raise argparse.ArgumentTypeError(f"{text} is neither seconds above 0 nor -1 (off)")
    return value


def limit(text: str) -> int:
    value = whole(-1, 2**31 - 1)(text)
    if value == 0:
        raise argparse.ArgumentTypeError("0 would let nobody in; give 1 or more, or -1 for no limit")
    return value


def cache_type(text: str) -> str:
    if text not in CACHE_TYPES:
        raise argparse.ArgumentTypeError(f"'{text}' is none of {', '.join(CACHE_TYPES)}")
    return text


def parallel(text: str) -> int:
    value = whole(-1, 255)(text)
    if value == 0:
        raise argparse.ArgumentTypeError("0 slots can serve nobody; give 1 or more")
    return 4 if value == -1 else value


def threads(text: str) -> int:
    return max(0, whole(-1, 512)(text))


def layers(text: str) -> int:
    return -1 if text in ("auto", "all") else whole(-1, 2**31 - 1)(text)


def boolean(text: str) -> bool:
    if text.lower() in ("on", "enabled", "true", "1"):
        return True
    if text.lower() in ("off", "disabled", "false", "0"):
        return False
    raise argparse.ArgumentTypeError(f"'{text}' is neither on nor off")


def flash(text: str) -> str:
    if text.lower() in ("auto", "-1"):
        return "auto"
    return "on" if boolean(text) else "off"


def host(text: str) -> str:
    if not text or "," in text or "/" in text or text.endswith(".sock") or " " in text:
        raise argparse.ArgumentTypeError(f"'{text}' is not one address or host name to listen on")
    return text


def path(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    return os.path.abspath(os.path.expanduser(text))


def alias(text: str) -> str:
    return text.split(",")[0].strip()


def keys(text: str) -> tuple[str, ...]:
    keys = tuple(key for part in text.split(",") if (key := part.strip()))
    if not keys:
        raise argparse.ArgumentTypeError("the key is empty")
    return keys


def key_file(text: str) -> tuple[str, ...]:
    try:
        lines = Path(path(text)).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise argparse.ArgumentTypeError(f"cannot read '{text}': {reason}") from None
    keys = tuple(key for line in lines if (key := line.strip()) and not key.startswith("#"))
    if not keys:
        raise argparse.ArgumentTypeError(f"'{text}' holds no key")
    return keys
