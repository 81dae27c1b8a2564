"""A model of random weights with the real model's vocabulary: its text is nonsense, its steps are quick."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter

LAYERS, WIDTH, HEADS, FEED = 2, 64, 2, 96


def write(path: Path, vocabulary_of: Path) -> None:
    """Write a llama-architecture GGUF of 2 layers and 64 dimensions to `path`."""
    reader = GGUFReader(vocabulary_of)
    writer = GGUFWriter(path, "llama")
    for name, field in reader.fields.items():
        if name.startswith("tokenizer."):
            kind, sub = field.types[0], field.types[1] if len(field.types) > 1 else None
            if kind is GGUFValueType.ARRAY:
                writer.add_key_value(name, field.contents(), kind, sub)
            else:
                writer.add_key_value(name, field.contents(), kind)
    vocabulary = len(reader.fields["tokenizer.ggml.tokens"].data)
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    random = np.random.default_rng(1)

    def weights(name: str, *shape: int) -> None:
        writer.add_tensor(name, (0.5 * random.standard_normal(shape)).astype(np.float32))

    weights("token_embd.weight", vocabulary, WIDTH)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    for i in range(LAYERS):
        for norm in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{i}.{norm}.weight", np.ones(WIDTH, np.float32))
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            weights(f"blk.{i}.{part}.weight", WIDTH, WIDTH)
        weights(f"blk.{i}.ffn_gate.weight", FEED, WIDTH)
        weights(f"blk.{i}.ffn_up.weight", FEED, WIDTH)
        weights(f"blk.{i}.ffn_down.weight", WIDTH, FEED)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
