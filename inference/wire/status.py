"""The state of the service, from the workers' occupancy snapshots: /health, /slots, /props and /v1/models.

Nothing here tells whose a generation is, or any of its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from inference.messages import SamplingParams
from inference.wire import llamacpp
from inference.wire.api import Defaults
from inference.wire.errors import RequestError

Snapshot = dict[str, Any]

# How a parked chat's KV state is kept, as the worker's model allows it.
PREEMPTION = {"pieces": "swap in pieces", "whole": "swap as a whole", "none": "recompute", "off": "off"}


def health(snapshots: Sequence[Snapshot]) -> tuple[int, dict[str, Any]]:
    """HTTP status and body of GET /health: 200 as soon as one worker is ready."""
    try:
        _ready(snapshots)
    except RequestError as error:
        return error.status, llamacpp.error_body(error)
    return 200, {"status": "ok"}


def slots(snapshots: Sequence[Snapshot]) -> list[dict[str, Any]]:
    """The body of GET /slots. Ids are unique within a worker."""
    return [
        {
            "id": slot["id"],
            "worker": snapshot["worker"],
            "n_ctx": snapshot["n_ctx_seq"],
            "speculative": False,
            "is_processing": slot["state"] != "idle",
            "is_preempted": slot["state"] in ("parking", "parked", "resuming"),
            "is_transferring": slot["state"] in ("parking", "resuming"),
            "is_held": slot["held"],
            "state": slot["state"],
            "n_cells": slot["cells"],
            "n_prompt_tokens": slot["n_prompt_tokens"],
            "n_prompt_tokens_processed": slot["n_prompt_processed"],
            "n_decoded": slot["n_decoded"],
            "tokens_per_second": slot["tokens_per_second"],
            "n_preempted": slot["parks"],
        }
        for snapshot in snapshots
        for slot in snapshot["slots"]
    ]


def props(snapshots: Sequence[Snapshot], defaults: Defaults) -> dict[str, Any]:
    """The body of GET /props; raises RequestError (503) while no worker is ready."""
    ready = _ready(snapshots)
    model = ready["model"]
    sampling = SamplingParams(temperature=defaults.temperature, seed=defaults.seed)
    limits = {"max_tokens": defaults.max_tokens, "n_predict": defaults.max_tokens}
    return {
        "default_generation_settings": {
            "params": llamacpp.sampling_settings(sampling) | limits,
            "n_ctx": ready["n_ctx_seq"],
        },
        "total_slots": sum(len(snapshot["slots"]) for snapshot in snapshots),
        "model_alias": model["alias"],
        "model_path": PurePath(model["path"]).name,  # its folder is the operator's business
        "modalities": {"vision": False, "audio": False},
        "chat_template": model["chat_template"],
        "build_info": "berth",
        "exact_concurrency": ready["exact"],
        "context_shift": ready["context_shift"],
        "preemption": PREEMPTION[ready["swap"]],
    }


def models(snapshots: Sequence[Snapshot]) -> dict[str, Any]:
    """The body of GET /v1/models: each model that a worker has, once."""
    return {"object": "list", "data": list(_models(snapshots).values())}


def model(snapshots: Sequence[Snapshot], id: str) -> dict[str, Any]:
    """The body of GET /v1/models/{id}; raises RequestError: 404 for another, 503 while no worker is ready."""
    _ready(snapshots)
    found = _models(snapshots)
    if id not in found:
        message = f'There is no model "{id:.200}" here: {", ".join(found)}.'
        raise RequestError(404, "", message, "model", {"code": "model_not_found"})
    return found[id]


def _models(snapshots: Sequence[Snapshot]) -> dict[str, dict[str, Any]]:
    return {s["model"]["alias"]: _model(s) for s in snapshots if s["state"] == "ready"}


def _model(snapshot: Snapshot) -> dict[str, Any]:
    model = snapshot["model"]
    return {
        "id": model["alias"],
        "object": "model",
        "created": int(snapshot["started_at"]),
        "owned_by": "berth",
        "meta": {
            "desc": model["desc"],
            "n_vocab": model["n_vocab"],
            "n_ctx": snapshot["n_ctx_seq"],
            "n_ctx_train": model["n_ctx_train"],
            "n_params": model["n_params"],
            "size": model["size"],
        },
    }


def _ready(snapshots: Sequence[Snapshot]) -> Snapshot:
    for snapshot in snapshots:
        if snapshot["state"] == "ready":
            return snapshot
    states = {snapshot["state"] for snapshot in snapshots}
    if "loading" in states:
        raise RequestError(503, "", "Loading model")
    if "draining" in states:
        raise RequestError(503, "", "No worker takes new requests: an operator drains them.")
    raise RequestError(503, "", "No worker is running.")
