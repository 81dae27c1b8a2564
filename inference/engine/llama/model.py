"""A model's weights and vocabulary."""

from __future__ import annotations

import ctypes
import os
from functools import cached_property
from typing import Any

from .library import ModelError, forget_errors, last_error, lib, start

KEEP_EACH_BYTE = (lib.LLAMA_VOCAB_TYPE_SPM, lib.LLAMA_VOCAB_TYPE_BPE)


class Model:
    """Weights and vocabulary. Raises ModelError when the file cannot be loaded."""

    def __init__(self, path: str, gpu_layers: int = -1) -> None:
        start()
        forget_errors()
        params = lib.llama_model_default_params()
        params.n_gpu_layers = gpu_layers if gpu_layers >= 0 else 0x7FFFFFFF
        self.path = path
        self.on_gpu = bool(gpu_layers and lib.llama_supports_gpu_offload())
        self._model = lib.llama_model_load_from_file(os.fsencode(path), params)
        if not self._model:
            raise ModelError(last_error("llama.cpp could not load the file"))
        if not lib.llama_model_has_decoder(self._model):
            raise ModelError("the model has no decoder, so it cannot generate text")
        self._vocab = lib.llama_model_get_vocab(self._model)
        self.n_vocab: int = lib.llama_vocab_n_tokens(self._vocab)
        self.n_ctx_train: int = lib.llama_model_n_ctx_train(self._model)
        self.n_params: int = lib.llama_model_n_params(self._model)
        self.size: int = lib.llama_model_size(self._model)
        buffer = ctypes.create_string_buffer(256)
        lib.llama_model_desc(self._model, buffer, 256)
        self.desc = buffer.value.decode("utf-8", "replace")
        # Its memory is not, or not only, a cell for each token.
        self.recurrent = bool(
            lib.llama_model_is_recurrent(self._model) or lib.llama_model_is_hybrid(self._model)
        )
        self.add_bos: bool = lib.llama_vocab_get_add_bos(self._vocab)
        self._pieces: dict[int, bytes] = {}
        self.eog = frozenset(t for t in range(self.n_vocab) if lib.llama_vocab_is_eog(self._vocab, t))

    @property
    def head_sizes(self) -> set[int]:
        """Dimensions of the keys of one head; those of the layers with a sliding window can be others."""
        prefix = f"{self._meta('general.architecture')}.attention.key_length"
        given = self._meta(prefix)
        heads = lib.llama_model_n_head(self._model)
        sizes = {int(given) if given.isdigit() else lib.llama_model_n_embd(self._model) // max(heads, 1)}
        return sizes | {int(size) for size in [self._meta(f"{prefix}_swa")] if size.isdigit()}

    def _meta(self, key: str) -> str:
        """A value of the file's metadata, "" when it has none."""
        buffer = ctypes.create_string_buffer(256)
        n: int = lib.llama_model_meta_val_str(self._model, key.encode(), buffer, 256)
        return buffer.value.decode("utf-8", "replace") if n >= 0 else ""

    @property
    def chat_template(self) -> str:
        """The Jinja source of the model's chat template, "" when it has none."""
        template = lib.llama_model_chat_template(self._model, None)
        return template.decode("utf-8", "replace") if template else ""

    @property
    def bos(self) -> str:
        return self._special(lib.llama_vocab_bos(self._vocab))

    @property
    def eos(self) -> str:
        return self._special(lib.llama_vocab_eos(self._vocab))

    def _special(self, token: int) -> str:
        return "" if token < 0 else self.piece(token, special=True).decode("utf-8", "replace")

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Token ids of `text`."""
        raw = text.encode("utf-8", "surrogatepass")
        size = len(raw) + 16
        while True:
            tokens = (lib.llama_token * size)()
            n = lib.llama_tokenize(self._vocab, raw, len(raw), tokens, size, add_special, parse_special)
            if n >= 0:
                return list(tokens[:n])
            size = -n

    def piece(self, token: int, *, special: bool = False) -> bytes:
        """The bytes of one token, which can be half a character. `special` shows control tokens too."""
        cached = None if special else self._pieces.get(token)
        if cached is not None:
            return cached
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            n = lib.llama_token_to_piece(self._vocab, token, buffer, size, 0, special)
            if n >= 0:
                break
            size = -n
        raw = buffer.raw[:n]
        if not special:
            self._pieces[token] = raw
        return raw

    @cached_property
    def longest_piece(self) -> int:
        """Bytes of the longest token: a text of n bytes has n / `longest_piece` tokens or more. 0 where that
        is not so, since the vocabulary's kind takes bytes away."""
        if lib.llama_vocab_type(self._vocab) not in KEEP_EACH_BYTE:
            return 0
        return max(1, *(len(self.piece(token, special=True)) for token in range(self.n_vocab)))

    def detokenize(self, tokens: list[int]) -> str:
        pieces = {token: self.piece(token, special=True) for token in set(tokens)}
        return b"".join(map(pieces.__getitem__, tokens)).decode("utf-8", "replace")

    @property
    def handle(self) -> Any:
        return self._model
