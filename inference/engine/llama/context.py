"""The KV cache: decoding in it, and a sequence's state out of it and back."""

from __future__ import annotations

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .batch import Batch
from .library import ModelError, forget_errors, last_error, lib
from .model import Model

FLASH_ATTENTION = {"auto": -1, "off": 0, "on": 1}
CACHE_TYPES: dict[str, int] = {
    "f32": lib.GGML_TYPE_F32,
    "f16": lib.GGML_TYPE_F16,
    "bf16": 30,  # GGML_TYPE_BF16: the bindings lack it
    "q8_0": lib.GGML_TYPE_Q8_0,
    "q5_1": lib.GGML_TYPE_Q5_1,
    "q5_0": lib.GGML_TYPE_Q5_0,
    "q4_1": lib.GGML_TYPE_Q4_1,
    "q4_0": lib.GGML_TYPE_Q4_0,
    "iq4_nl": lib.GGML_TYPE_IQ4_NL,
}

LEAST_BATCH = 64  # tokens; what is tried out below takes so many

SavedState = npt.NDArray[np.uint8]
Swap = Literal["pieces", "whole", "none"]


class Context:
    """The KV cache and the graph over it: `n_ctx` cells shared by the sequences 0..n_seq_max-1.

    With `exact`, each sequence has `n_ctx` cells of its own, so that it lies in them as if it were alone,
    and flash attention is off, which adds up in another order when others are in the batch. It takes
    n_seq_max times the memory. `together` says whether sequences that decode one token each can then
    share a batch without a bit of their logits changing.

    `swap` says how a sequence's state can be saved: "pieces", "whole", or "none".

    Raises ModelError when it cannot be allocated.
    """

    def __init__(
        self,
        model: Model,
        *,
        n_ctx: int,
        n_seq_max: int,
        n_batch: int = 2048,
        n_ubatch: int = 512,
        n_threads: int = 0,
        flash_attn: str = "auto",
        cache_type_k: str = "f16",
        cache_type_v: str = "f16",
        exact: bool = False,
    ) -> None:
        forget_errors()
        # A state that is not one cell a token cannot be taken apart; streams of cells cannot share them.
        divisible = not (exact or model.recurrent)
        params = lib.llama_context_default_params()
        params.n_ctx = n_ctx * n_seq_max if exact else n_ctx
        params.n_batch = n_batch = max(n_batch, n_seq_max, LEAST_BATCH)  # a step takes a token of each
        params.n_ubatch = min(n_ubatch, n_batch)
        params.n_seq_max = n_seq_max + divisible
        params.n_outputs_max = params.n_seq_max
        params.n_threads = params.n_threads_batch = n_threads or _usable_cpus()
        params.flash_attn_type = FLASH_ATTENTION["off" if exact else flash_attn]
        params.type_k, params.type_v = CACHE_TYPES[cache_type_k], CACHE_TYPES[cache_type_v]
        params.kv_unified = not exact
        params.no_perf = True
        self.model = model
        self._ctx = lib.llama_init_from_model(model.handle, params)
        if not self._ctx:
            raise ModelError(last_error("llama.cpp could not allocate the context"))
        self._memory = lib.llama_get_memory(self._ctx)
        self.n_ctx: int = lib.llama_n_ctx_seq(self._ctx)
        self.n_batch: int = lib.llama_n_batch(self._ctx)
        self.can_shift: bool = lib.llama_memory_can_shift(self._memory) and _can_turn(model, cache_type_k)
        self.exact = exact
        self._row = ctypes.c_float * model.n_vocab
        self._scratch = n_seq_max if divisible else -1
        self._header = self._per_cell = 0  # bytes of a piece
        # In a thread that ends: the OpenMP threads of one that lives on would count for too many for the
        # cores, and then those of the decode thread would sleep at each barrier.
        with ThreadPoolExecutor(1) as thread:
            self.swap: Swap = thread.submit(self._try_swap).result()
            self.together = exact and thread.submit(self._try_together, n_seq_max).result()

    @property
    def handle(self) -> Any:
        return self._ctx

    def decode(self, batch: Batch) -> int:
        """Run one batch. 0: done. 1: no cells were found and nothing changed.

        Raises ModelError for anything worse, after which the context is not to be used.
        """
        batch.struct.n_tokens = batch.n
        status: int = lib.llama_decode(self._ctx, batch.struct)
        if status not in (0, 1):
            raise ModelError(f"llama_decode failed with {status}: {last_error('no reason given')}")
        return status

    def logits(self, index: int) -> npt.NDArray[np.float32]:
        """The logits of one batch index, n_vocab floats; valid until the next decode."""
        pointer = lib.llama_get_logits_ith(self._ctx, index)
        row: Any = self._row.from_address(ctypes.addressof(pointer.contents))
        return np.frombuffer(row, np.float32)

    def remove(self, seq_id: int, start: int = -1) -> bool:
        """Release the cells of a sequence from position `start` on. False: the model cannot do that."""
        return bool(lib.llama_memory_seq_rm(self._memory, seq_id, start, -1))

    def shift(self, seq_id: int, n_keep: int, n_discard: int) -> None:
        """Forget `n_discard` tokens after the first `n_keep`; what follows moves up.

        The keys are turned only by the next `decode`: until then the state is not to be saved.
        Raises ModelError when what is left could not be moved together.
        """
        end = n_keep + n_discard
        lib.llama_memory_seq_rm(self._memory, seq_id, n_keep, end)
        # Saved and loaded, it is as after a park: in cells in the order of the positions, and without what
        # had left a sliding window. So a park before or after the shift changes nothing.
        data = self.save(seq_id)
        if data is not None and not (self.remove(seq_id) and self.load(seq_id, data)):
            raise ModelError("a context shift lost its cells")
        lib.llama_memory_seq_add(self._memory, seq_id, end, -1, -n_discard)

    def cells(self, seq_id: int) -> int:
        """Cells that a sequence holds, when it holds every position from 0 on."""
        return int(lib.llama_memory_seq_pos_max(self._memory, seq_id)) + 1

    # --- a sequence's state in host RAM -----------------------------------------------------------

    def state_size(self, seq_id: int) -> int:
        """Bytes that the whole state takes; 0 when it cannot be saved."""
        return int(lib.llama_state_seq_get_size_ext(self._ctx, seq_id, 0))

    def piece_bound(self, n: int) -> int:
        """Bytes that a piece of `n` positions takes at most. With a sliding window it may be less."""
        return self._header + n * self._per_cell

    def save(self, seq_id: int) -> SavedState | None:
        """A copy of the whole state; None when it cannot be saved."""
        size = self.state_size(seq_id)
        if size == 0:
            return None
        data = np.empty(size, np.uint8)
        written: int = lib.llama_state_seq_get_data_ext(self._ctx, _bytes(data), size, seq_id, 0)
        return data if written == size else None

    def load(self, seq_id: int, data: SavedState) -> bool:
        """Put a saved state into free cells. False when there are not enough: nothing is held then."""
        read: int = lib.llama_state_seq_set_data_ext(self._ctx, _bytes(data), data.size, seq_id, 0)
        if read != data.size:
            self.remove(seq_id)
        return read == data.size

    def save_piece(self, seq_id: int, start: int, stop: int) -> SavedState | None:
        """A copy of the positions from `start` to before `stop`. Only where `swap` is "pieces"."""
        lib.llama_memory_seq_cp(self._memory, seq_id, self._scratch, start, stop)
        data = self.save(self._scratch)
        self.remove(self._scratch)
        return data

    def load_piece(self, seq_id: int, data: SavedState) -> bool:
        """Add a saved piece to a sequence that ends where it starts. False: no cells, nothing changed."""
        if not self.load(self._scratch, data):
            return False
        lib.llama_memory_seq_cp(self._memory, self._scratch, seq_id, -1, -1)
        self.remove(self._scratch)
        return True

    def _try_together(self, n_seq_max: int) -> bool:
        """Find out by doing it whether a token's logits are the same with others in the batch."""
        prompt, alone = [*range(1, 34)], None
        for n in range(1, n_seq_max + 1):
            for seq_id in range(n):
                batch = Batch(len(prompt))
                batch.add(prompt[seq_id % 7 :], 0, seq_id, True)
                self.decode(batch)
            batch = Batch(n)
            for seq_id in range(n):
                batch.add([40], len(prompt) - seq_id % 7, seq_id, True)
            self.decode(batch)
            logits = self.logits(0).copy()
            lib.llama_memory_clear(self._memory, True)
            if alone is not None and not np.array_equal(logits, alone):
                return False
            alone = logits
        return True

    def _try_swap(self) -> Swap:
        """Find out by doing it, with a few tokens, what this model's memory allows."""
        n, half = 8, 4
        batch = Batch(n)
        batch.add([0] * n, 0, 0, True)
        try:
            if self.decode(batch) != 0:
                return "none"
            whole = self.save(0)
            if whole is None or not self.remove(0):
                return "none"
            restored = self.load(0, whole) and self.save(0)
            if restored is None or not np.array_equal(whole, restored):
                return "none"
            return "pieces" if self._scratch >= 0 and self._try_pieces(whole, half, n) else "whole"
        finally:
            lib.llama_memory_clear(self._memory, True)

    def _try_pieces(self, whole: SavedState, half: int, n: int) -> bool:
        second = self.save_piece(0, half, n)
        if second is None or not self.remove(0, half):
            return False
        first = self.save_piece(0, 0, half)
        self.remove(0)
        if first is None or not (self.load_piece(0, first) and self.load_piece(0, second)):
            return False
        again = self.save(0)
        self._per_cell = (whole.size - second.size) // half
        self._header = whole.size - n * self._per_cell
        return again is not None and np.array_equal(whole, again)

    def close(self) -> None:
        if self._ctx:
            lib.llama_free(self._ctx)
            self._ctx = None


def _can_turn(model: Model, cache_type_k: str) -> bool:
    """Whether llama.cpp can turn keys of that type, which a context shift does. Where not, it crashes."""
    if cache_type_k in ("f32", "f16"):
        return True
    # It has the rotation through which it turns quantised keys only for such heads; for bf16 it has no RoPE.
    return cache_type_k != "bf16" and {size % 64 for size in model.head_sizes} == {0}


def _bytes(data: SavedState) -> Any:
    return ctypes.cast(data.ctypes.data, ctypes.POINTER(ctypes.c_uint8))


def _usable_cpus() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
