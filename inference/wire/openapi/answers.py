"""What the API answers."""

from __future__ import annotations

from typing import Any

from inference.messages import Timings

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
INTEGER: Schema = {"type": "integer"}
NULL: Schema = {"type": "null"}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def record(**properties: Schema) -> Schema:
    """An object that has all of these."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def listed(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def with_optional(schema: Schema, **properties: Schema) -> Schema:
    return {**schema, "properties": {**schema["properties"], **properties}}


TIMINGS = record(**dict.fromkeys(Timings().to_dict(), NUMBER))
USAGE = record(
    prompt_tokens=COUNT,
    completion_tokens=COUNT,
    total_tokens=COUNT,
    prompt_tokens_details=record(cached_tokens=COUNT),
)
FINISH: Schema = {"enum": ["stop", "length"]}


def _openai(object_: str, **choice: Schema) -> Schema:
    choices = with_optional(
        record(index=COUNT, **choice, logprobs=NULL, finish_reason=FINISH), timings=ref("Timings")
    )
    whole = record(
        id=TEXT,
        object={"const": object_},
        created=COUNT,
        model=TEXT,
        choices=listed(choices),
        usage=ref("Usage"),
    )
    return with_optional(whole, timings=ref("Timings"))


CHAT = _openai("chat.completion", message=record(role={"const": "assistant"}, content=TEXT))
COMPLETIONS = _openai("text_completion", text=TEXT)
ONE_COMPLETION = record(
    index=COUNT,
    content=TEXT,
    tokens=listed(COUNT),
    id_slot=INTEGER,
    stop=BOOLEAN,
    model=TEXT,
    tokens_predicted=COUNT,
    tokens_evaluated=COUNT,
    generation_settings={"type": "object"},
    prompt={},
    has_new_line=BOOLEAN,
    truncated=BOOLEAN,
    stop_type={"enum": ["none", "eos", "limit", "word", "cancelled"]},
    stopping_word=TEXT,
    tokens_cached=COUNT,
    timings=ref("Timings"),
)
COMPLETION: Schema = {"anyOf": [ONE_COMPLETION, listed(ONE_COMPLETION)]}

PIECE = record(id=COUNT, piece={"anyOf": [TEXT, listed(COUNT)]})
TOKENIZE = record(tokens=listed({"anyOf": [COUNT, PIECE]}))
DETOKENIZE = record(content=TEXT)
APPLY_TEMPLATE = record(prompt=TEXT)

HEALTH = record(status={"const": "ok"})
MODEL = record(id=TEXT, object={"const": "model"}, created=COUNT, owned_by=TEXT, meta={"type": "object"})
MODELS = record(object={"const": "list"}, data=listed(MODEL))
SLOTS = listed(
    record(
        id=COUNT,
        worker=TEXT,
        n_ctx=COUNT,
        speculative=BOOLEAN,
        is_processing=BOOLEAN,
        is_preempted=BOOLEAN,
        is_transferring=BOOLEAN,
        is_held=BOOLEAN,
        state={"enum": ["idle", "prefill", "decode", "parking", "parked", "resuming"]},
        n_cells=COUNT,
        n_prompt_tokens=COUNT,
        n_prompt_tokens_processed=COUNT,
        n_decoded=COUNT,
        tokens_per_second=NUMBER,
        n_preempted=COUNT,
    )
)
SLOT_ACTION = record(id_slot=INTEGER, id=TEXT, worker=TEXT, is_held=BOOLEAN)
PROPS = record(
    default_generation_settings=record(params={"type": "object"}, n_ctx=COUNT),
    total_slots=COUNT,
    model_alias=TEXT,
    model_path=TEXT,
    modalities=record(vision=BOOLEAN, audio=BOOLEAN),
    chat_template=TEXT,
    build_info=TEXT,
    exact_concurrency=BOOLEAN,
    context_shift=BOOLEAN,
    preemption=TEXT,
)

OPTIONAL_TEXT: Schema = {"type": ["string", "null"]}
OPENAI_ERROR = record(error=record(message=TEXT, type=TEXT, param=OPTIONAL_TEXT, code=OPTIONAL_TEXT))
LLAMA_ERROR = record(error=record(code=INTEGER, message=TEXT, type=TEXT))

COMPONENTS: dict[str, Schema] = {
    "Timings": TIMINGS,
    "Usage": USAGE,
    "ChatCompletion": CHAT,
    "TextCompletion": COMPLETIONS,
    "Completion": COMPLETION,
    "OpenAIError": OPENAI_ERROR,
    "Error": LLAMA_ERROR,
}
