"""Paths at which nothing is: a 404 that says what it is that a client of other servers misses here."""

from __future__ import annotations

from typing import Any

from inference.wire.errors import RequestError
from inference.wire.openai import error_body

# First parts of paths, and what is found there elsewhere. A 501 would be asked for again by OpenAI's SDKs.
NOT_OFFERED = {
    "v1/messages": "Anthropic's Messages API",
    "v1/responses": "OpenAI's Responses API",
    "v1/embeddings": "embeddings",
    "embeddings": "embeddings",
    "embedding": "embeddings",
    "v1/rerank": "reranking",
    "v1/reranking": "reranking",
    "rerank": "reranking",
    "reranking": "reranking",
    "infill": "infilling",
    "lora-adapters": "LoRA adapters",
    "v1/audio": "audio",
    "v1/images": "images",
    "v1/moderations": "moderation",
    "v1/files": "files",
    "v1/batches": "batches",
    "v1/fine_tuning": "fine-tuning",
    "api": "Ollama's API",
}


def not_found(path: str) -> RequestError:
    """Of a path that nothing is at; it begins with a slash."""
    parts = path.strip("/").split("/")
    what = NOT_OFFERED.get("/".join(parts[:2])) or NOT_OFFERED.get(parts[0])
    why = f": this server does not offer {what}" if what else ""
    return RequestError(404, "", f"There is no {path:.200} here{why}. GET /openapi.json tells what there is.")


def error_of(path: str, error: RequestError) -> dict[str, Any]:
    """The JSON body of an error at such a path, in the shape that its clients read."""
    if path.rstrip("/") == "/v1/messages" or path.startswith("/v1/messages/"):
        return {"type": "error", "error": {"type": error.type, "message": error.message}}
    return error_body(error)
