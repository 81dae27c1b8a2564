"""Models of random weights with the real model's vocabulary: their text is nonsense, their steps are quick.

One for each kind of memory that llama.cpp has: every cell of the past, a sliding window of it, a recurrent
state, and a hybrid of cells and state.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter
from numpy.typing import NDArray

Kind = Literal["llama", "gemma3", "mamba", "lfm2"]

LAYERS, WIDTH, FEED = 2, 64, 96
WINDOW = 32
INNER, STATE, RANK, KERNEL = 2 * WIDTH, 8, 4, 4  # of mamba


def write(
    path: Path,
    vocabulary_of: Path,
    kind: Kind = "llama",
    chat_template: str | None = None,
    only_words: bool = False,
) -> None:
    """Write a GGUF of 2 layers and 64 dimensions to `path`.

    `only_words`: greedy, it says one plain word after the other and never comes to an end.
    """
    writer = GGUFWriter(path, kind)
    reader = _read(vocabulary_of)
    vocabulary = _copy_vocabulary(writer, reader)
    if chat_template is not None:
        writer.add_chat_template(chat_template)
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_layer_norm_rms_eps(1e-5)
    weights = Weights(writer)
    # Of little weight, so that the next token hangs on the context and not on the last token alone.
    weights.random("token_embd.weight", vocabulary, WIDTH, scale=0.02)
    weights.random("output.weight", vocabulary, WIDTH, rows=_words(reader) if only_words else None)
    weights.ones("token_embd_norm.weight" if kind == "lfm2" else "output_norm.weight", WIDTH)
    {"llama": _llama, "gemma3": _gemma3, "mamba": _mamba, "lfm2": _lfm2}[kind](writer, weights)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class Weights:
    """Adds tensors; the same ones each time."""

    def __init__(self, writer: GGUFWriter) -> None:
        self._writer = writer
        self._dice = np.random.default_rng(1)

    def random(
        self, name: str, *shape: int, scale: float = 0.5, rows: NDArray[np.bool_] | None = None
    ) -> None:
        """`rows`: the others are 0."""
        values = (scale * self._dice.standard_normal(shape)).astype(np.float32)
        self._writer.add_tensor(name, values if rows is None else values * rows[:, None])

    def ones(self, name: str, *shape: int, scale: float = 1.0) -> None:
        self._writer.add_tensor(name, np.full(shape, scale, np.float32))


@cache
def _read(path: Path) -> GGUFReader:
    return GGUFReader(path)


def chat_template(path: Path) -> str:
    """A model's own."""
    return str(_read(path).fields["tokenizer.chat_template"].contents())


def _copy_vocabulary(writer: GGUFWriter, reader: GGUFReader) -> int:
    """The number of its tokens."""
    for name, field in reader.fields.items():
        if name.startswith("tokenizer.") and name != "tokenizer.chat_template":
            kind, sub = field.types[0], field.types[1] if len(field.types) > 1 else None
            if kind is GGUFValueType.ARRAY:
                writer.add_key_value(name, field.contents(), kind, sub)
            else:
                writer.add_key_value(name, field.contents(), kind)
    return len(reader.fields["tokenizer.ggml.tokens"].data)


def _words(reader: GGUFReader) -> NDArray[np.bool_]:
    """Which tokens are a space and a word."""
    field = reader.fields["tokenizer.ggml.tokens"]
    tokens = (bytes(field.parts[i]).decode() for i in field.data)
    return np.array([re.fullmatch("Ġ[a-z]{2,}", token) is not None for token in tokens])


def _llama(writer: GGUFWriter, weights: Weights) -> None:
    """Its keys, when they are quantised, cannot be turned by a context shift: a head has 32 dimensions."""
    _heads(writer, 2, 2)
    for i in range(LAYERS):
        _attention(weights, i)
        _feed_forward(weights, i)


def _gemma3(writer: GGUFWriter, weights: Weights) -> None:
    """A layer that sees the window, and one that sees everything."""
    _heads(writer, 1, 1)
    writer.add_sliding_window(WINDOW)
    writer.add_sliding_window_pattern(2)
    for i in range(LAYERS):
        _attention(weights, i)
        _head_norms(weights, i)
        _feed_forward(weights, i)
        weights.ones(f"blk.{i}.post_attention_norm.weight", WIDTH)
        weights.ones(f"blk.{i}.post_ffw_norm.weight", WIDTH)


def _mamba(writer: GGUFWriter, weights: Weights) -> None:
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_ssm_conv_kernel(KERNEL)
    writer.add_ssm_inner_size(INNER)
    writer.add_ssm_state_size(STATE)
    writer.add_ssm_time_step_rank(RANK)
    for i in range(LAYERS):
        blk = f"blk.{i}"
        weights.ones(f"{blk}.attn_norm.weight", WIDTH)
        weights.random(f"{blk}.ssm_in.weight", 2 * INNER, WIDTH)
        weights.random(f"{blk}.ssm_conv1d.weight", INNER, KERNEL)
        weights.random(f"{blk}.ssm_conv1d.bias", INNER)
        weights.random(f"{blk}.ssm_x.weight", RANK + 2 * STATE, INNER)
        weights.random(f"{blk}.ssm_dt.weight", INNER, RANK)
        weights.random(f"{blk}.ssm_dt.bias", INNER)
        weights.ones(f"{blk}.ssm_a", INNER, STATE, scale=-0.1)  # it forgets slowly
        weights.ones(f"{blk}.ssm_d", INNER)
        weights.random(f"{blk}.ssm_out.weight", WIDTH, INNER)


def _lfm2(writer: GGUFWriter, weights: Weights) -> None:
    """A layer of convolution, which keeps a state, and one of attention."""
    _heads(writer, 1, [0, 1])
    writer.add_shortconv_l_cache(KERNEL)
    blk = "blk.0"
    weights.ones(f"{blk}.attn_norm.weight", WIDTH)
    weights.random(f"{blk}.shortconv.conv.weight", WIDTH, KERNEL)
    weights.random(f"{blk}.shortconv.in_proj.weight", 3 * WIDTH, WIDTH)
    weights.random(f"{blk}.shortconv.out_proj.weight", WIDTH, WIDTH)
    _feed_forward(weights, 0)
    _attention(weights, 1)
    _head_norms(weights, 1)
    _feed_forward(weights, 1)


def _heads(writer: GGUFWriter, n: int, kv: int | list[int]) -> None:
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(n)
    writer.add_head_count_kv(kv)
    writer.add_rope_dimension_count(WIDTH // n)


def _attention(weights: Weights, i: int) -> None:
    weights.ones(f"blk.{i}.attn_norm.weight", WIDTH)
    for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
        weights.random(f"blk.{i}.{part}.weight", WIDTH, WIDTH)


def _head_norms(weights: Weights, i: int) -> None:
    """Of one head."""
    weights.ones(f"blk.{i}.attn_q_norm.weight", WIDTH)
    weights.ones(f"blk.{i}.attn_k_norm.weight", WIDTH)


def _feed_forward(weights: Weights, i: int) -> None:
    weights.ones(f"blk.{i}.ffn_norm.weight", WIDTH)
    weights.random(f"blk.{i}.ffn_gate.weight", FEED, WIDTH)
    weights.random(f"blk.{i}.ffn_up.weight", FEED, WIDTH)
    weights.random(f"blk.{i}.ffn_down.weight", WIDTH, FEED)
