"""The API's description of itself: OpenAPI 3.1, as GET /openapi.json serves it."""

from __future__ import annotations

from typing import Any, NamedTuple

from inference.wire.openapi import answers, requests
from inference.wire.openapi.answers import ref

Schema = dict[str, Any]

ERRORS = {
    400: "The request is not as it must be; the message says what is wrong.",
    401: "A key is needed, and this is none, or none any more.",
    403: "The key does not allow this.",
    404: "There is no such thing.",
    409: "Not in the state that it is in.",
    413: "The body is too large.",
    429: "Too much at once for this caller. Retry-After says when to try again.",
    501: "The server does not offer this.",
    503: "No worker, or no room. Retry-After says when to try again.",
}
STREAM = (
    "With `stream`, server-sent events: each `data:` line is a chunk in JSON{done}. Comments say what else "
    "happens: `: preempted` and `: resumed` when the generation is parked and goes on, keepalives in any "
    "other silence."
)


class Operation(NamedTuple):
    """What one method does at one or several paths, the first of which names it."""

    paths: tuple[str, ...]
    method: str
    summary: str
    answer: Schema
    errors: tuple[int, ...]
    body: Schema | None = None
    is_openai: bool = False  # by the shape of its errors
    stream: str = ""  # what a stream is like, for those that can
    parameters: tuple[Schema, ...] = ()
    is_public: bool = False
    content_type: str = "application/json"


_GENERATE = (400, 401, 403, 413, 429, 503)
_ASK = (400, 401, 413, 429, 503)


def _query(name: str, schema: Schema, required: bool = False) -> Schema:
    return {"name": name, "in": "query", "required": required, "schema": schema}


OPERATIONS = (
    Operation(
        ("/v1/chat/completions", "/chat/completions"),
        "post",
        "Answer a conversation",
        ref("ChatCompletion"),
        _GENERATE,
        ref("ChatRequest"),
        is_openai=True,
        stream=STREAM.format(done=", the last is `[DONE]`"),
    ),
    Operation(
        ("/v1/completions",),
        "post",
        "Go on from one or several prompts",
        ref("TextCompletion"),
        _GENERATE,
        ref("TextCompletionRequest"),
        is_openai=True,
        stream=STREAM.format(done=", the last is `[DONE]`"),
    ),
    Operation(
        ("/completion", "/completions"),
        "post",
        "Go on from one or several prompts, as llama-server does",
        ref("Completion"),
        _GENERATE,
        ref("CompletionRequest"),
        stream=STREAM.format(done=""),
    ),
    Operation(("/tokenize",), "post", "The tokens of a text", answers.TOKENIZE, _ASK, requests.TOKENIZE),
    Operation(("/detokenize",), "post", "The text of tokens", answers.DETOKENIZE, _ASK, requests.DETOKENIZE),
    Operation(
        ("/apply-template",),
        "post",
        "The prompt that the model's chat template makes of messages",
        answers.APPLY_TEMPLATE,
        _ASK,
        requests.APPLY_TEMPLATE,
    ),
    Operation(
        ("/health", "/v1/health"), "get", "Whether a worker is ready", answers.HEALTH, (503,), is_public=True
    ),
    Operation(
        ("/v1/models", "/models"),
        "get",
        "The models that are served",
        answers.MODELS,
        (503,),
        is_openai=True,
        is_public=True,
    ),
    Operation(
        ("/v1/models/{model}", "/models/{model}"),
        "get",
        "One of them",
        answers.MODEL,
        (404, 503),
        is_openai=True,
        parameters=({"name": "model", "in": "path", "required": True, "schema": answers.TEXT},),
        is_public=True,
    ),
    Operation(("/slots",), "get", "The slots and what they do", answers.SLOTS, (401, 501, 503)),
    Operation(
        ("/slots/{slot}",),
        "post",
        "Park a chat and hold it, or release it. For keys of staff",
        answers.SLOT_ACTION,
        (400, 401, 403, 404, 409, 413, 501, 503),
        parameters=(
            {"name": "slot", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 0}},
            _query("action", {"enum": ["park", "unpark"]}, required=True),
            _query("id", {"type": "string", "pattern": "^[0-9a-f]{32}$"}),
            _query("worker", {"type": "string"}),
        ),
    ),
    Operation(("/props",), "get", "The server's properties", answers.PROPS, (401, 503)),
    Operation(
        ("/metrics",), "get", "Prometheus metrics", answers.TEXT, (401, 501, 503), content_type="text/plain"
    ),
    Operation(
        ("/openapi.json",), "get", "This description", {"type": "object"}, (), is_openai=True, is_public=True
    ),
)


def document(version: str) -> dict[str, Any]:
    """The whole description, to be sent as JSON."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        for path in operation.paths:
            paths.setdefault(path, {})[operation.method] = _described(operation, path)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Berth", "version": version},
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {
                "Message": requests.MESSAGE,
                "ChatRequest": requests.CHAT,
                "TextCompletionRequest": requests.COMPLETIONS,
                "CompletionRequest": requests.COMPLETION,
                **answers.COMPONENTS,
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "X-Api-Key"},
            },
        },
    }


def _described(operation: Operation, path: str) -> dict[str, Any]:
    content: dict[str, Any] = {operation.content_type: {"schema": operation.answer}}
    if operation.stream:
        content["text/event-stream"] = {}
    error = {"application/json": {"schema": ref("OpenAIError" if operation.is_openai else "Error")}}
    found: dict[str, Any] = {
        "operationId": f"{operation.method}{path}".replace("/", "_"),
        "summary": operation.summary,
        "description": operation.stream,
        # {}: while the server has no key, and listens on a loopback address
        "security": [] if operation.is_public else [{"bearer": []}, {"header": []}, {}],
        "parameters": list(operation.parameters),
        "responses": {
            "200": {"description": "The answer.", "content": content},
            **{str(status): {"description": ERRORS[status], "content": error} for status in operation.errors},
        },
    }
    if operation.body is not None:
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": operation.body}}}
    return found
