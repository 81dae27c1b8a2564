"""The few facts of a GGUF header that tell how much memory a model takes. Nothing is loaded."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any, NamedTuple

from . import CannotStart

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
VOCABULARY = "tokenizer.ggml.tokens"
MOST = 1 << 24  # of whatever a header counts: keys, tensors, tokens, the bytes of a string
MOST_DIMENSIONS = 4
INT32_MAX = 2**31 - 1


class Shape(NamedTuple):
    """What decides the memory that a model takes besides its file."""

    n_ctx_train: int  # tokens
    kv_bytes: int  # bytes of KV state per token, 16 bits a value; 0 where the header does not tell
    n_vocab: int  # 0 where the header does not tell


def check(path: Path) -> None:
    """Raises CannotStart unless this is a file that begins as a GGUF model does."""
    try:
        with path.open("rb") as file:
            begin = file.read(8)
    except OSError as error:
        raise CannotStart(
            f"cannot read the model {path}: {error.strerror}; give a GGUF file with --model"
        ) from None
    if len(begin) < 8 or begin[:4] != b"GGUF" or not 2 <= struct.unpack("<I", begin[4:])[0] <= 3:
        raise CannotStart(f"{path} is not a GGUF model, or is corrupt; give another file with --model")


def read_shape(path: Path) -> Shape:
    """The shape of a model. Raises CannotStart when its header is damaged or its data is cut off."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            facts, end = _Header(data).read()
        shape = _shape(facts)
    except (struct.error, UnicodeDecodeError, ArithmeticError, KeyError, ValueError):
        raise CannotStart(f"the model {path} is corrupt (its header is damaged); get it again") from None
    if path.stat().st_size <= end:
        raise CannotStart(f"the model {path} is corrupt (its end is missing); get it again")
    return shape


def _shape(facts: dict[str, Any]) -> Shape:
    """Raises ValueError for a fact of the wrong type."""
    arch = facts.get("general.architecture", "")

    def fact(name: str, default: int | list[int] = 0) -> Any:
        value = facts.get(f"{arch}.{name}", default)
        for one in value if isinstance(value, list) else [value]:
            if type(one) is not int or not 0 <= one <= INT32_MAX:
                raise ValueError(f"{name} is {one}")
        return value

    def number(name: str, default: int = 0) -> int:
        value = fact(name, default)
        return max(value, default=0) if isinstance(value, list) else int(value)

    if f"{arch}.context_length" in facts and not number("context_length"):
        raise ValueError("it has no context")
    layers, heads = number("block_count"), number("attention.head_count")
    kv_heads = fact("attention.head_count_kv", heads)
    head_size = number("embedding_length") // heads if heads else 0
    values = number("attention.key_length", head_size) + number("attention.value_length", head_size)
    all_heads = sum(kv_heads) if isinstance(kv_heads, list) else kv_heads * layers
    return Shape(number("context_length"), 2 * all_heads * values, facts.get(VOCABULARY, 0))


class _Header:
    """A reader of what stands before the tensors' data. An array of strings counts by its length alone.

    Raises ValueError for what is no header: a file can say anything of itself.
    """

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def read(self) -> tuple[dict[str, Any], int]:
        """Keys and values, and the position at which the last tensor begins."""
        _, _, n_tensors, n_pairs = self._take("<4sIQQ")
        facts: dict[str, Any] = {}
        for _ in range(_bounded(n_pairs)):
            key = self._string()
            facts[key] = self._value(self._take("<I")[0])
        last = 0
        for _ in range(_bounded(n_tensors)):
            self._string()
            self._take(f"<{_bounded(self._take('<I')[0], MOST_DIMENSIONS)}Q")
            last = max(last, self._take("<IQ")[1])
        alignment = facts.get("general.alignment", 32)
        if type(alignment) is not int or alignment < 1 or not isinstance(facts.get(VOCABULARY, 0), int):
            raise ValueError("its alignment or its vocabulary is of another type")
        return facts, -(-self._at // alignment) * alignment + last

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self._string()
        if kind != ARRAY:
            return self._take("<" + SCALARS[kind])[0]
        inner, length = self._take("<IQ")
        if inner == STRING:
            self._skip_strings(_bounded(length))
            return length
        return list(self._take(f"<{_bounded(length)}{SCALARS[inner]}"))

    def _skip_strings(self, count: int) -> None:
        data, at, size = self._data, self._at, struct.Struct("<Q").unpack_from
        for _ in range(count):  # hundreds of thousands of them
            at += 8 + size(data, at)[0]
        self._at = at

    def _string(self) -> str:
        size = _bounded(self._take("<Q")[0])
        raw = self._data[self._at : self._at + size]
        self._at += size
        return raw.decode()

    def _take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return values


def _bounded(count: int, most: int = MOST) -> int:
    if count > most:
        raise ValueError(f"{count} is too many")
    return count
