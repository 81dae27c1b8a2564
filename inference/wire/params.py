"""What all endpoints read in the same way: sampling, stop strings and the most tokens to generate."""

from __future__ import annotations

import math
from typing import Any

from inference.messages import HIGHEST, LOWEST, PRIORITIES, RANDOM_SEED, SamplingParams
from inference.wire.errors import invalid
from inference.wire.fields import INT32_MAX, Body, are_token_ids, boolean, integer, is_int, number

MAX_STOP_STRINGS = 16
MAX_STOP_LENGTH = 500  # characters; each token is compared with each of them
MAX_BIASES = 100_000  # of a request: its choices have a sampler each
MAX_REPEAT_LAST_N = 2**20  # the sampler keeps a buffer of this many tokens
_ALMOST_GREEDY = 1e-6  # dividing by less overflows a 32-bit float

# The least and the most that each of the sampling fields may be.
NUMBERS: dict[str, tuple[float, float]] = {
    "temperature": (0, 100),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "typical_p": (0, 1),
    "repeat_penalty": (0.01, 100),  # logits are divided by it: not zero, nor what rounds to it
    "presence_penalty": (-100, 100),
    "frequency_penalty": (-100, 100),
}
INTEGERS = {"top_k": (-1, INT32_MAX), "repeat_last_n": (-1, MAX_REPEAT_LAST_N)}


def sampling(body: Body, temperature: float, seed: int) -> SamplingParams:
    """The sampling fields of a body; `temperature` and `seed` are the operator's defaults."""
    d = SamplingParams(temperature=temperature)
    found: dict[str, Any] = {
        **{name: number(body, name, getattr(d, name), *bounds) for name, bounds in NUMBERS.items()},
        **{name: integer(body, name, getattr(d, name), *bounds) for name, bounds in INTEGERS.items()},
    }
    if found["temperature"] < _ALMOST_GREEDY:
        found["temperature"] = 0.0
    return SamplingParams(
        **found,
        seed=_seed(body, seed),
        logit_bias=_logit_bias(body),
        ignore_eos=boolean(body, "ignore_eos", d.ignore_eos),
    )


def max_tokens(body: Body, default: int, longest: int, *, low: int) -> int:
    """The first given of n_predict, max_completion_tokens and max_tokens; -1, no bound, means `default`.

    As in llama-server, who asks for more than `longest` (-1: no bound) gets as much, and hears it from
    the finish reason.
    """
    found = -1
    for name in ("max_tokens", "max_completion_tokens", "n_predict"):
        value = body.get(name)
        if value is None:
            continue
        if not is_int(value) or value < -1 or -1 < value < low:
            raise invalid(name, f'"{name}" must be an integer of at least {low}, or -1 for no bound.')
        found = min(value, INT32_MAX)
    found = default if found == -1 else found
    if longest == -1:
        return found
    return longest if found == -1 else min(found, longest)


def stop(body: Body) -> tuple[str, ...]:
    """The strings before which the text ends."""
    value = body.get("stop")
    if value is None:
        return ()
    words = value if isinstance(value, list) else [value]
    if len(words) > MAX_STOP_STRINGS or not all(
        isinstance(w, str) and 0 < len(w) <= MAX_STOP_LENGTH for w in words
    ):
        raise invalid(
            "stop",
            f'"stop" must be a string of 1 to {MAX_STOP_LENGTH} characters, or a list of at most '
            f"{MAX_STOP_STRINGS} of them.",
        )
    return tuple(words)


def priority(body: Body, default: int) -> int:
    """high, normal, low, or an integer as vLLM takes it: the lower goes first."""
    value = body.get("priority")
    if value is None:
        return default
    if isinstance(value, str) and value in PRIORITIES:
        return PRIORITIES[value]
    if not is_int(value) or not HIGHEST <= value <= LOWEST:
        raise invalid(
            "priority",
            f'"priority" must be "high", "normal" or "low", or an integer from {HIGHEST} (the most urgent) '
            f"to {LOWEST}.",
        )
    return int(value)


def include_usage(body: Body) -> bool:
    """Whether the stream's last chunk is to tell the usage."""
    options = body.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict):
        raise invalid("stream_options", '"stream_options" must be an object.')
    wanted = options.get("include_usage")
    if wanted is not None and not isinstance(wanted, bool):
        raise invalid("stream_options", '"stream_options.include_usage" must be true or false.')
    return bool(wanted)


def check_model(body: Body) -> None:
    """Any name will do, as there is one model; but a name it must be."""
    if not isinstance(body.get("model"), str | None):
        raise invalid("model", '"model" must be a string.')


def _seed(body: Body, default: int) -> int:
    value = body.get("seed")
    if value is None:
        return default
    if not is_int(value) or not -1 <= value <= RANDOM_SEED:
        raise invalid(
            "seed",
            f'"seed" must be an integer from 0 to {RANDOM_SEED}; -1 and {RANDOM_SEED} are a random one.',
        )
    return -1 if value == RANDOM_SEED else int(value)


def _logit_bias(body: Body) -> tuple[tuple[int | str, float], ...]:
    """{"15043": -1.5} or [[15043, -1.5], [" Hello", false]]; false forbids the token."""
    value = body.get("logit_bias")
    if value is None:
        return ()
    if isinstance(value, dict | list) and len(value) > MAX_BIASES:
        raise invalid("logit_bias", f'"logit_bias" may have at most {MAX_BIASES} entries.')
    if isinstance(value, dict):
        return tuple((_token_or_text(key), _bias(bias)) for key, bias in value.items())
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise invalid("logit_bias", '"logit_bias" must be an object or a list of [token, bias] pairs.')
    if not are_token_ids([token for token, _ in value], or_texts=True):
        raise invalid("logit_bias", '"logit_bias": a token must be given as its id or as text.')
    return tuple((token, _bias(bias)) for token, bias in value)


def _token_or_text(key: str) -> int | str:
    """An object's keys are always strings: one of digits is an id."""
    if not (key.isascii() and key.isdigit()):
        return key
    if len(key) > 10 or int(key) > INT32_MAX:
        raise invalid("logit_bias", f'"logit_bias": {key} is too large for a token id.')
    return int(key)


def _bias(value: Any) -> float:
    if value is False:
        return -math.inf
    if type(value) not in (int, float) or not -1e9 <= value <= 1e9:
        raise invalid(
            "logit_bias", '"logit_bias": a bias must be a finite number, or false to forbid a token.'
        )
    return float(value)
