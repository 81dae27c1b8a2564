"""Generations and bodies that the tests of this folder share."""

from __future__ import annotations

import json
from typing import Any

from inference.messages import (
    Accepted,
    Event,
    Finished,
    GenerationRequest,
    Preempted,
    Resumed,
    Started,
    Timings,
    Token,
)
from inference.wire.api import Api, Defaults, Encoder
from inference.wire.llamacpp import COMPLETION
from inference.wire.openai import CHAT, COMPLETIONS

DEFAULTS = Defaults()
APIS: list[Api] = [CHAT, COMPLETIONS, COMPLETION]
SOURCES: dict[str, dict[str, Any]] = {
    CHAT.name: {"messages": [{"role": "user", "content": "Hello"}]},
    COMPLETIONS.name: {"prompt": "Hello"},
    COMPLETION.name: {"prompt": "Hello"},
}
TIMINGS = Timings(prompt_n=5, prompt_ms=20.0, predicted_n=4, predicted_ms=80.0)
MODEL = 'smol "\0" lm'  # a name that would break careless quoting


def source(api: Api) -> dict[str, Any]:
    """The smallest body that this endpoint takes."""
    return dict(SOURCES[api.name])


def parse(api: Api, **fields: Any) -> GenerationRequest:
    return api.parse(source(api) | fields, DEFAULTS)


def encoder(api: Api, **fields: Any) -> Encoder:
    body = source(api) | {"stream": True} | fields
    return api.encoder(api.parse(body, DEFAULTS), body, id="abc", model=MODEL, created=1700000000)


def finished(**fields: Any) -> Finished:
    usual: dict[str, Any] = {
        "stop_type": "eos",
        "stopping_word": "",
        "text": "",
        "prompt_tokens": 5,
        "completion_tokens": 4,
        "truncated": False,
        "slot": 2,
        "timings": TIMINGS,
        "parks": 0,
        "parked_s": 0.0,
        "ttft_s": 0.1,
    }
    return Finished(**usual | fields)


def generation(*texts: str, parked: bool = False, **last: Any) -> list[Event]:
    """The events of a generation that shows these texts, with a park after its first token if `parked`."""
    events: list[Event] = [Accepted(prompt_tokens=5, seed=7, max_tokens=-1), Started(slot=2)]
    events += [Token(100 + i, text) for i, text in enumerate(texts)]
    if parked:
        events[3:3] = [Preempted(slot=2, cause="pressure", cells=6, bytes=9000), Resumed(slot=2, waited=1.0)]
    return [*events, finished(**{"completion_tokens": len(texts)} | last)]


def stream(api: Api, events: list[Event], **fields: Any) -> bytes:
    e = encoder(api, **fields)
    return b"".join([e.event(event) for event in events])


def objects(raw: bytes) -> list[dict[str, Any]]:
    """The JSON of every `data:` line but [DONE]."""
    lines = [line[6:] for line in raw.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def shown(chunks: list[dict[str, Any]]) -> str:
    """The text that a client would put together."""
    out = []
    for chunk in chunks:
        out.append(chunk.get("content") or "")
        for choice in chunk.get("choices", []):
            out.append(choice.get("text") or choice.get("delta", {}).get("content") or "")
    return "".join(out)


def result_text(result: dict[str, Any]) -> str:
    if "choices" not in result:
        return str(result["content"])
    choice = result["choices"][0]
    return str(choice["message"]["content"] if "message" in choice else choice["text"])


def snapshot(**fields: Any) -> dict[str, Any]:
    """A worker with one slot that decodes, one that is parked and one that is idle."""
    slot = {
        "id": 0,
        "state": "decode",
        "generation": "g0",
        "owner": "alice",
        "priority": 0,
        "held": False,
        "cells": 120,
        "n_prompt_tokens": 100,
        "n_prompt_processed": 100,
        "n_decoded": 20,
        "tokens_per_second": 30.5,
        "parks": 1,
        "since": 1.0,
    }
    usual: dict[str, Any] = {
        "worker": "w1",
        "at": 10.0,
        "started_at": 1700000000.5,
        "state": "ready",
        "model": {
            "alias": "smollm2",
            "path": "/srv/models/smollm2.gguf",
            "desc": "llama 135M Q4_1",
            "size": 98000000,
            "n_params": 134515008,
            "n_vocab": 49152,
            "n_ctx_train": 8192,
            "chat_template": "{{ messages }}",
        },
        "n_ctx": 512,
        "n_ctx_seq": 512,
        "pool": {"cells": 512, "used": 128},
        "slots": [
            slot,
            slot | {"id": 1, "state": "parked", "held": True, "generation": "g1", "cells": 0},
            slot | {"id": 2, "state": "idle", "generation": None, "owner": "", "cells": 0},
        ],
        "parked": [{"generation": "g1", "owner": "bob", "slot": 1, "cells": 90, "bytes": 4096, "since": 9.0}],
        "queue": [{"generation": "g2", "owner": "carol", "since": 9.5, "n_prompt_tokens": 12}],
        "counters": {
            "prompt_tokens_total": 200,
            "prompt_tokens_cached_total": 60,
            "prompt_seconds_total": 4.0,
            "tokens_predicted_total": 300,
            "tokens_predicted_seconds_total": 6.0,
            "n_decode_total": 100,
            "n_busy_slots_per_decode": 2.0,
            "n_preempt_total": 3,
            "n_resume_total": 2,
            "preempt_ram_bytes": 4096,
            "preempt_ram_kept_bytes": 512,
            "cache_ram_bytes": 2048,
            "recomputed_tokens_total": 7,
            "copied_out_bytes_total": 9000,
            "copied_in_bytes_total": 8000,
            "context_shifts_total": 0,
        },
        "swap": "pieces",
        "context_shift": False,
        "exact": False,
        "moves": {
            "parks": [["pressure", "swap", 2], ["rotation", "recompute", 1]],
            "resumes": [["pressure", "swap", 2]],
        },
        "histograms": {
            "first_token_seconds": {"bounds": [1.0, 5.0], "counts": [2, 1, 1], "sum": 11.5},
            "parked_seconds": {"bounds": [1.0, 5.0], "counts": [1, 2, 0], "sum": 4.5},
            "copy_out_seconds": {"bounds": [1.0, 5.0], "counts": [0, 0, 0], "sum": 0.0},
            "copy_in_seconds": {"bounds": [1.0, 5.0], "counts": [0, 0, 0], "sum": 0.0},
        },
    }
    return usual | fields
