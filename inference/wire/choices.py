"""How many choices a request asks for: of each of its prompts, and in all."""

from __future__ import annotations

from inference.wire.errors import invalid
from inference.wire.fields import Body, integer
from inference.wire.params import MAX_BIASES

MAX_CHOICES = 128  # of one request; each is a generation of its own in the queue


def choices(body: Body, n_prompts: int = 1, most: int = MAX_CHOICES) -> int:
    """`n`, which llama-server also calls `n_cmpl`. Raises RequestError when prompts x n is more than `most`.

    `best_of` may say the same: the best of more cannot be told without their probabilities.
    """
    n = integer(body, "n", 1, 1, most)
    n_cmpl = integer(body, "n_cmpl", n, 1, most)
    if body.get("n") is None:
        n = n_cmpl
    elif n_cmpl != n:
        raise invalid("n_cmpl", '"n" and "n_cmpl" mean the same and must not differ.')
    if integer(body, "best_of", n, 1, most) != n:
        raise invalid("best_of", '"best_of" other than "n" is not supported here: leave it out.')
    if n_prompts * n > most:
        raise invalid(
            "prompt",
            f'{n_prompts} prompts times "n" are {n_prompts * n} choices: at most {most} a request.',
        )
    biases = body.get("logit_bias")
    if n_prompts * n > 1 and isinstance(biases, list | dict) and len(biases) * n_prompts * n > MAX_BIASES:
        raise invalid("logit_bias", f'"logit_bias" is too long for {n_prompts * n} choices.')
    return n
