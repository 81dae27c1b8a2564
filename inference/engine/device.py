"""What a model computes on, in the words of ggml."""

from __future__ import annotations

import ctypes

from llama_cpp._ggml import libggml

CPU, GPU, INTEGRATED_GPU = 0, 1, 2  # ggml_backend_dev_type


def name(on_gpu: bool) -> str:
    """Of the first GPU where a model is on one, else of the processor; "CPU" where ggml knows none."""
    for kind in (GPU, INTEGRATED_GPU) if on_gpu else (CPU,):
        if device := _by_type(kind):
            description: bytes | None = _description(device)
            return (description or b"").decode(errors="replace") or "CPU"
    return "CPU"


_by_type = libggml.ggml_backend_dev_by_type
_by_type.restype, _by_type.argtypes = ctypes.c_void_p, [ctypes.c_int]
_description = libggml.ggml_backend_dev_description
_description.restype, _description.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
