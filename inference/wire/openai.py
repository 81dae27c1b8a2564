"""OpenAI's API: POST /v1/chat/completions and POST /v1/completions.

llama-server's sampling fields are taken too, and its `timings` are given with the last chunk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from inference.messages import Event, Finished, GenerationRequest, Token
from inference.wire import params, prompts, sse
from inference.wire.api import Defaults, Encoder, Usage
from inference.wire.choices import choices
from inference.wire.common import common
from inference.wire.encoder import EventEncoder, outcome
from inference.wire.errors import RequestError
from inference.wire.fields import Body, json_object
from inference.wire.unsupported import refuse_unsupported

_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


def error_body(error: RequestError) -> dict[str, Any]:
    """An error as OpenAI's SDKs read it. A prompt that is too long is told by its code, not by its type."""
    type, code = error.type, _CODES.get(error.status)
    if type == "exceed_context_size_error":
        type, code = "invalid_request_error", "context_length_exceeded"
    return {
        "error": {"message": error.message, "type": type, "param": error.param, "code": code} | error.extra
    }


class _OpenAI(ABC):
    """What the two endpoints share."""

    name: str

    @abstractmethod
    def _source(self, body: Body, max_choices: int) -> dict[str, Any]:
        """The part of the request that says what to generate from, and how many choices."""

    def parse(self, body: Any, defaults: Defaults) -> GenerationRequest:
        body = json_object(body)
        params.check_model(body)
        refuse_unsupported(body)
        params.include_usage(body)
        return GenerationRequest(
            **self._source(body, defaults.max_choices),
            **common(body, defaults, low=1),
        )

    def error(self, error: RequestError) -> dict[str, Any]:
        return error_body(error)


class Chat(_OpenAI):
    """POST /v1/chat/completions"""

    name = "chat/completions"  # "chat" are the answers of the pages

    def _source(self, body: Body, max_choices: int) -> dict[str, Any]:
        return {"messages": prompts.messages(body), "n": choices(body, 1, max_choices)}

    def encoder(
        self, request: GenerationRequest, body: Body, *, id: str, model: str, created: int, index: int = 0
    ) -> Encoder:
        return _ChatEncoder(body, id, model, created, index)


class Completions(_OpenAI):
    """POST /v1/completions"""

    name = "completions"

    def _source(self, body: Body, max_choices: int) -> dict[str, Any]:
        found = prompts.prompts(body)
        return {**prompts.source(found), "n": choices(body, len(found), max_choices)}

    def encoder(
        self, request: GenerationRequest, body: Body, *, id: str, model: str, created: int, index: int = 0
    ) -> Encoder:
        return _CompletionsEncoder(body, id, model, created, index)


CHAT = Chat()
COMPLETIONS = Completions()


class _OpenAIEncoder(EventEncoder):
    """Chunks that differ in their choice alone."""

    id_prefix: str
    chunk_object: str

    def __init__(self, body: Body, id: str, model: str, created: int, index: int) -> None:
        self.id, self.model, self.created, self.index = self.id_prefix + id, model, created, index
        self._include_usage = params.include_usage(body)
        self._text = sse.TextData(lambda text: self._chunk(self._choice(text, None)))

    @abstractmethod
    def _choice(self, text: str, finish_reason: str | None) -> dict[str, Any]:
        """A chunk's choice with this text; the last chunk of a stream has none."""

    def _opening(self) -> bytes:
        """What comes before the first text, once."""
        return b""

    def _head(self, object: str) -> dict[str, Any]:
        return {"id": self.id, "object": object, "created": self.created, "model": self.model}

    def _chunk(self, *choices: dict[str, Any]) -> dict[str, Any]:
        return self._head(self.chunk_object) | {"choices": list(choices)}

    def token(self, token: Token) -> bytes:
        if not token.text:
            return b""
        return self._opening() + self._text(token.text)

    def ended(self, finished: Finished) -> bytes:
        parts = [self._opening()]
        if finished.text:
            parts.append(self._text(finished.text))
        last = self._chunk(self._choice("", _finish_reason(finished)))
        parts.append(sse.data(last | {"timings": finished.timings.to_dict()}))
        return b"".join(parts)

    def closing(self, usage: Usage) -> bytes:
        told = sse.data(self._chunk() | {"usage": _usage(usage)}) if self._include_usage else b""
        return told + sse.DONE

    def failure(self, error: RequestError) -> bytes:
        return sse.data(error_body(error))

    def _result(self, object: str, choice: dict[str, Any], finished: Finished) -> dict[str, Any]:
        tail = {
            "choices": [choice],
            "usage": _usage(Usage.of(finished)),
            "timings": finished.timings.to_dict(),
        }
        return self._head(object) | tail

    def merged(self, results: Sequence[dict[str, Any]], usage: Usage) -> Any:
        """Each choice has the timings that are its own."""
        choices = [r["choices"][0] | {"timings": r["timings"]} for r in results]
        return self._head(results[0]["object"]) | {"choices": choices, "usage": _usage(usage)}


class _ChatEncoder(_OpenAIEncoder):
    id_prefix = "chatcmpl-"
    chunk_object = "chat.completion.chunk"
    _opened = False

    def _choice(self, text: str, finish_reason: str | None) -> dict[str, Any]:
        delta = {"content": text} if finish_reason is None else {}
        return {"index": self.index, "delta": delta, "logprobs": None, "finish_reason": finish_reason}

    def _opening(self) -> bytes:
        if self._opened:
            return b""
        self._opened = True
        choice = self._choice("", None) | {"delta": {"role": "assistant", "content": ""}}
        return sse.data(self._chunk(choice))

    def result(self, events: Sequence[Event]) -> dict[str, Any]:
        text, finished = outcome(events)
        message = {"role": "assistant", "content": text}
        choice = {
            "index": self.index,
            "message": message,
            "logprobs": None,
            "finish_reason": _finish_reason(finished),
        }
        return self._result("chat.completion", choice, finished)


class _CompletionsEncoder(_OpenAIEncoder):
    id_prefix = "cmpl-"
    chunk_object = "text_completion"

    def _choice(self, text: str, finish_reason: str | None) -> dict[str, Any]:
        return {"index": self.index, "text": text, "logprobs": None, "finish_reason": finish_reason}

    def result(self, events: Sequence[Event]) -> dict[str, Any]:
        text, finished = outcome(events)
        return self._result("text_completion", self._choice(text, _finish_reason(finished)), finished)


def _finish_reason(finished: Finished) -> str:
    return "length" if finished.stop_type == "limit" else "stop"


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }
