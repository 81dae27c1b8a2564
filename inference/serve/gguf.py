"""The few facts of a GGUF header that tell how much memory a model takes. Nothing is loaded."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from . import CannotStart

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
TOKENS = "tokenizer.ggml.tokens"  # what says how big the model is stands before the vocabulary


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
    """The shape of a model. Raises CannotStart when its header is damaged."""
    try:
        with path.open("rb") as file:
            header = _read_header(file)
    except (struct.error, UnicodeDecodeError, KeyError, EOFError, OverflowError):
        raise CannotStart(
            f"the model {path} is corrupt (its header is damaged); get the file again"
        ) from None
    arch = header.get("general.architecture", "")

    def fact(name: str, default: int = 0) -> Any:
        return header.get(f"{arch}.{name}", default)

    layers, heads = fact("block_count"), fact("attention.head_count")
    kv_heads = fact("attention.head_count_kv", heads)
    head_size = fact("embedding_length") // _most(heads) if _most(heads) else 0
    values = fact("attention.key_length", head_size) + fact("attention.value_length", head_size)
    all_heads = sum(kv_heads) if isinstance(kv_heads, list) else kv_heads * layers
    return Shape(fact("context_length"), 2 * all_heads * values, header.get(TOKENS, 0))


def _most(heads: int | list[int]) -> int:
    return max(heads, default=0) if isinstance(heads, list) else heads


def _read_header(file: BinaryIO) -> dict[str, Any]:
    """Keys and values up to the vocabulary, of which only the length is taken."""
    _, _, _, n_pairs = _unpack(file, "<4sIQQ")
    header: dict[str, Any] = {}
    for _ in range(n_pairs):
        key = _string(file)
        kind = _unpack(file, "<I")[0]
        if key == TOKENS and kind == ARRAY:
            header[key] = _unpack(file, "<IQ")[1]
            break
        header[key] = _value(file, kind)
    return header


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == STRING:
        return _string(file)
    if kind != ARRAY:
        return _unpack(file, "<" + SCALARS[kind])[0]
    inner, length = _unpack(file, "<IQ")
    if inner in (STRING, ARRAY):
        return [_value(file, inner) for _ in range(length)]
    return list(_unpack(file, f"<{length}{SCALARS[inner]}"))


def _string(file: BinaryIO) -> str:
    return _read(file, _unpack(file, "<Q")[0]).decode()


def _unpack(file: BinaryIO, layout: str) -> tuple[Any, ...]:
    return struct.unpack(layout, _read(file, struct.calcsize(layout)))


def _read(file: BinaryIO, size: int) -> bytes:
    if size > 1 << 26:  # no key or value before the vocabulary is that long
        raise EOFError
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data
