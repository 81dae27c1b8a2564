"""What one decode computes."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from .library import lib


class Batch:
    """The tokens of one decode: at most `capacity`, each in one sequence."""

    def __init__(self, capacity: int) -> None:
        self.n = 0
        self._token = np.zeros(capacity, np.int32)
        self._pos = np.zeros(capacity, np.int32)
        self._seq = np.zeros(capacity, np.int32)
        self._logits = np.zeros(capacity, np.int8)
        self._n_seq = np.ones(capacity, np.int32)
        # llama.h wants a pointer to each token's list of sequences; ours have one entry each.
        self._seq_pointers = self._seq.ctypes.data + 4 * np.arange(capacity, dtype=np.uintp)
        fields: dict[str, Any] = {field[0]: field[1] for field in lib.llama_batch._fields_}
        self.struct = lib.llama_batch(
            0,
            self._pointer(self._token, fields["token"]),
            None,
            self._pointer(self._pos, fields["pos"]),
            self._pointer(self._n_seq, fields["n_seq_id"]),
            self._pointer(self._seq_pointers, fields["seq_id"]),
            self._pointer(self._logits, fields["logits"]),
        )

    @staticmethod
    def _pointer(array: npt.NDArray[Any], kind: Any) -> Any:
        return ctypes.cast(array.ctypes.data, kind)

    def clear(self) -> None:
        self.n = 0

    def add(self, tokens: list[int], start: int, seq_id: int, logits: bool) -> int:
        """Append `tokens` at positions from `start`; with `logits`, the last gives an output.

        Returns the batch index of the last one.
        """
        i, j = self.n, self.n + len(tokens)
        if j == i + 1:
            self._token[i], self._pos[i] = tokens[0], start
        else:
            self._token[i:j] = tokens
            self._pos[i:j] = np.arange(start, start + j - i, dtype=np.int32)
        self._seq[i:j] = seq_id
        self._logits[i:j] = 0
        if logits:
            self._logits[j - 1] = 1
        self.n = j
        return j - 1
