"""A thin, typed wrapper over llama.h through llama-cpp-python's low-level bindings.

`Model` may be used from any thread; `Context` and `Sampler` belong to the thread that decodes.
"""

from __future__ import annotations

from .batch import Batch
from .context import Context, SavedState
from .library import ModelError, lib
from .model import Model

__all__ = ["Batch", "Context", "Model", "ModelError", "SavedState", "lib"]
