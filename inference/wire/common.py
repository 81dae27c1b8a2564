"""What the requests of all endpoints have beside what they generate from."""

from __future__ import annotations

from typing import Any

from inference.wire import params
from inference.wire.api import Defaults
from inference.wire.fields import Body, boolean, integer


def common(body: Body, defaults: Defaults, *, low: int) -> dict[str, Any]:
    """Those fields of a GenerationRequest. `low` is the least `max_tokens`. Raises RequestError."""
    return {
        "sampling": params.sampling(body, defaults.temperature, defaults.seed),
        "max_tokens": params.max_tokens(body, defaults.max_tokens, defaults.longest, low=low),
        "stop": params.stop(body),
        "stream": boolean(body, "stream"),
        "cache_prompt": boolean(body, "cache_prompt", True),
        "priority": params.priority(body, defaults.priority),
        "n_keep": integer(body, "n_keep", defaults.keep, -1),
        "n_discard": integer(body, "n_discard", 0, 0),
    }
