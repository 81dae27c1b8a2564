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
    except (struct.error, UnicodeDecodeError, KeyError, IndexError, ValueError):
        raise CannotStart(f"the model {path} is corrupt (its header is damaged); get it again") from None
    if path.stat().st_size <= end:
        raise CannotStart(f"the model {path} is corrupt (its end is missing); get it again")
    arch = facts.get("general.architecture", "")

    def fact(name: str, default: Any = 0) -> Any:
        return facts.get(f"{arch}.{name}", default)

    layers, heads = fact("block_count"), _most(fact("attention.head_count"))
    kv_heads = fact("attention.head_count_kv", heads)
    head_size = fact("embedding_length") // heads if heads else 0
    values = fact("attention.key_length", head_size) + fact("attention.value_length", head_size)
    all_heads = sum(kv_heads) if isinstance(kv_heads, list) else kv_heads * layers
    return Shape(fact("context_length"), 2 * all_heads * values, facts.get(VOCABULARY, 0))


def _most(heads: int | list[int]) -> int:
    return max(heads, default=0) if isinstance(heads, list) else heads


class _Header:
    """A reader of what stands before the tensors' data. An array of strings counts by its length alone."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def read(self) -> tuple[dict[str, Any], int]:
        """Keys and values, and the position at which the last tensor begins."""
        _, _, n_tensors, n_pairs = self._take("<4sIQQ")
        facts = {}
        for _ in range(n_pairs):
            key = self._string()
            facts[key] = self._value(self._take("<I")[0])
        last = 0
        for _ in range(n_tensors):
            self._string()
            self._take(f"<{self._take('<I')[0]}Q")  # its dimensions
            last = max(last, self._take("<IQ")[1])
        alignment = facts.get("general.alignment", 32)
        return facts, -(-self._at // alignment) * alignment + last

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self._string()
        if kind != ARRAY:
            return self._take("<" + SCALARS[kind])[0]
        inner, length = self._take("<IQ")
        if inner == STRING:
            self._skip_strings(length)
            return length
        if inner == ARRAY:
            return [self._value(ARRAY) for _ in range(length)]
        return list(self._take(f"<{length}{SCALARS[inner]}"))

    def _skip_strings(self, count: int) -> None:
        data, at, size = self._data, self._at, struct.Struct("<Q").unpack_from
        for _ in range(count):  # hundreds of thousands of them
            at += 8 + size(data, at)[0]
        self._at = at

    def _string(self) -> str:
        size = self._take("<Q")[0]
        raw = self._data[self._at : self._at + size]
        self._at += size
        return raw.decode()

    def _take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return values
