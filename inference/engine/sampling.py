"""Sampling parameters -> llama.cpp's native sampler chain, in llama-server's order."""

from __future__ import annotations

import ctypes
import random

import numpy as np

from inference.messages import SamplingParams

from .llama import Context, Model, lib


class Sampler:
    """One sequence's sampler. Its state (penalties, random numbers) is in host RAM: parks leave it alone."""

    def __init__(self, model: Model, params: SamplingParams) -> None:
        self.seed = params.seed if params.seed >= 0 else random.getrandbits(32)
        self._chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
        biases = _biases(model, params)
        penalised = params.repeat_last_n != 0 and (
            params.repeat_penalty != 1.0 or params.frequency_penalty != 0.0 or params.presence_penalty != 0.0
        )
        self._argmax = params.temperature <= 0 and not penalised
        self._biased = np.array([b.token for b in biases], np.intp)
        self._bias = np.array([b.bias for b in biases], np.float32)
        if biases:
            array = (lib.llama_logit_bias * len(biases))(*biases)
            self._add(lib.llama_sampler_init_logit_bias(model.n_vocab, len(biases), array))
        self._dist = None
        self._last_n = 0
        if penalised:
            self._last_n = last_n = params.repeat_last_n if params.repeat_last_n > 0 else model.n_ctx_train
            self._add(
                lib.llama_sampler_init_penalties(
                    model.n_vocab,
                    last_n,
                    params.repeat_penalty,
                    params.frequency_penalty,
                    params.presence_penalty,
                )
            )
        if params.temperature <= 0:
            self._add(lib.llama_sampler_init_greedy())
            return
        if params.top_k > 0:
            self._add(lib.llama_sampler_init_top_k(params.top_k))
        if params.typical_p < 1:
            self._add(lib.llama_sampler_init_typical(params.typical_p, 1))
        if params.top_p < 1:
            self._add(lib.llama_sampler_init_top_p(params.top_p, 1))
        if params.min_p > 0:
            self._add(lib.llama_sampler_init_min_p(params.min_p, 1))
        self._add(lib.llama_sampler_init_temp(params.temperature))
        self._dist = lib.llama_sampler_init_dist(self.seed)
        self._add(self._dist)

    def _add(self, sampler: int) -> None:
        lib.llama_sampler_chain_add(self._chain, sampler)

    def accept_prompt(self, tokens: list[int]) -> None:
        """Let the penalties see the prompt, as llama-server does."""
        for token in tokens[-self._last_n :] if self._last_n else ():
            lib.llama_sampler_accept(self._chain, token)

    def replay(self, tokens: list[int]) -> None:
        """Come into the state after these tokens were sampled, in which nothing was computed here."""
        for token in tokens if self._last_n else ():
            lib.llama_sampler_accept(self._chain, token)
        if self._dist is not None:
            # Each token took one number, and so does a choice that is none.
            lone = lib.llama_token_data(0, 0.0, 0.0)
            choice = lib.llama_token_data_array(ctypes.pointer(lone), 1, -1, True)
            for _ in tokens:
                lib.llama_sampler_apply(self._dist, ctypes.byref(choice))

    def sample(self, ctx: Context, index: int) -> int:
        """Choose, and account for, the next token after batch index `index`."""
        if self._argmax:  # the same token as the greedy sampler's, without its copy of the vocabulary
            logits = ctx.logits(index)
            if self._bias.size:
                logits[self._biased] += self._bias  # in llama.cpp's buffer, which the next decode fills anew
            return int(logits.argmax())
        return int(lib.llama_sampler_sample(self._chain, ctx.handle, index))

    def close(self) -> None:
        if self._chain:
            lib.llama_sampler_free(self._chain)
            self._chain = None

    __del__ = close


def _biases(model: Model, params: SamplingParams) -> list[lib.llama_logit_bias]:
    """The biases token by token. A text biases each token it is made of. Raises ValueError for a bad id."""
    biases: dict[int, float] = {}
    for key, bias in params.logit_bias:
        tokens = (
            model.tokenize(key, add_special=False, parse_special=False) if isinstance(key, str) else [key]
        )
        for token in tokens:
            if not 0 <= token < model.n_vocab:
                raise ValueError(f"logit_bias: token {token} is not in the vocabulary of {model.n_vocab}")
            biases[token] = bias
    if params.ignore_eos:
        biases |= dict.fromkeys(model.eog, float("-inf"))
    return [lib.llama_logit_bias(token, bias) for token, bias in biases.items()]
