"""llama-server's own API: POST /completion and /completions, /tokenize, /detokenize and /apply-template."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl
from uuid import UUID

from inference.messages import (
    Accepted,
    Event,
    Finished,
    GenerationRequest,
    Resumed,
    SamplingParams,
    Started,
    Token,
)
from inference.wire import params, prompts, sse
from inference.wire.api import Defaults, Encoder, Usage
from inference.wire.choices import choices
from inference.wire.common import common
from inference.wire.encoder import EventEncoder, outcome
from inference.wire.errors import RequestError, invalid
from inference.wire.fields import MOST_VALUES, Body, are_token_ids, boolean, json_object
from inference.wire.unsupported import refuse_unsupported

MOST_TEXT = 2**20  # characters that are tokenised for somebody


def error_body(error: RequestError) -> dict[str, Any]:
    """An error as llama-server's clients read it."""
    return {"error": {"code": error.status, "message": error.message, "type": error.type} | error.extra}


def parse_tokenize(body: Any) -> dict[str, Any]:
    """The body of a tokenize job: content, add_special, parse_special, with_pieces. Raises RequestError."""
    body = json_object(body)
    content = body.get("content")
    if not isinstance(content, str) or len(content) > MOST_TEXT:
        raise invalid("content", f'"content" must be a string of at most {MOST_TEXT} characters.')
    return {
        "content": content,
        "add_special": boolean(body, "add_special", False),
        "parse_special": boolean(body, "parse_special", True),
        "with_pieces": boolean(body, "with_pieces", False),
    }


def parse_detokenize(body: Any) -> dict[str, Any]:
    """The body of a detokenize job: tokens, a list of ids. Raises RequestError."""
    tokens = json_object(body).get("tokens")
    if not isinstance(tokens, list) or len(tokens) > MOST_VALUES or not are_token_ids(tokens):
        message = f'"tokens" must be a list of at most {MOST_VALUES} token ids (integers of at least 0).'
        raise invalid("tokens", message)
    return {"tokens": tokens}


def parse_apply_template(body: Any) -> dict[str, Any]:
    """The body of an apply_template job: messages. Raises RequestError."""
    return {"messages": list(prompts.messages(json_object(body)))}


class SlotAction(NamedTuple):
    """What is to be done with a chat: the one in `slot`, or that of the id `generation`; or with a worker."""

    kind: str  # park or unpark; and where no HTTP request says it, whatever an operator may do
    slot: int | None = None
    generation: str = ""  # 32 hex digits
    worker: str = ""  # "": the only one
    priority: int = 0  # that it is given


def parse_slot_action(slot: str, query: str) -> SlotAction:
    """POST /slots/{slot}?action=park|unpark[&id=][&worker=]. Raises RequestError: 400, or 501 for what
    llama-server can do and this server cannot."""
    fields = dict(parse_qsl(query))
    kind, id = fields.get("action", ""), fields.get("id", "")
    if kind in ("save", "restore", "erase"):
        raise RequestError(501, "", f'"{kind}" is not supported here: a slot keeps nothing between requests.')
    if kind not in ("park", "unpark"):
        raise invalid("action", f'"action" must be park or unpark, not "{kind}".')
    if not (slot.isascii() and slot.isdigit() and len(slot) < 10):
        raise invalid("id_slot", f'The slot must be a number of /slots, not "{slot}".')
    try:
        generation = UUID(id).hex if id else ""
    except ValueError:
        raise invalid("id", '"id" must be the id of a generation: 32 hex digits.') from None
    return SlotAction(kind, int(slot), generation, fields.get("worker", ""))


def generation_settings(request: GenerationRequest, seed: int) -> dict[str, Any]:
    """What a request came to, in llama-server's names; `seed` is the one that is used."""
    return sampling_settings(request.sampling) | {
        "seed": seed,
        "stop": list(request.stop),
        "max_tokens": request.max_tokens,
        "n_predict": request.max_tokens,
        "stream": request.stream,
        "n_keep": request.n_keep,
        "n_discard": request.n_discard,
    }


def sampling_settings(sampling: SamplingParams) -> dict[str, Any]:
    """Sampling parameters in llama-server's names."""
    return {
        "seed": sampling.seed,
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
        "min_p": sampling.min_p,
        "typical_p": sampling.typical_p,
        "repeat_last_n": sampling.repeat_last_n,
        "repeat_penalty": sampling.repeat_penalty,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "mirostat": 0,
        "ignore_eos": sampling.ignore_eos,
        # JSON has no infinity; a request says false for it too.
        "logit_bias": [
            {"token": token, "bias": False if math.isinf(bias) else bias}
            for token, bias in sampling.logit_bias
        ],
        "n_probs": 0,
        "samplers": ["penalties", "top_k", "typ_p", "top_p", "min_p", "temperature"],
    }


class Completion:
    """POST /completion and /completions. A request for 0 tokens only has its prompt evaluated."""

    name = "completion"

    def parse(self, body: Any, defaults: Defaults) -> GenerationRequest:
        body = json_object(body)
        params.check_model(body)
        refuse_unsupported(body)
        boolean(body, "return_tokens")
        found = prompts.prompts(body)
        return GenerationRequest(
            **prompts.source(found),
            n=choices(body, len(found), defaults.max_choices),
            **common(body, defaults, low=0),
        )

    def encoder(
        self, request: GenerationRequest, body: Body, *, id: str, model: str, created: int, index: int = 0
    ) -> Encoder:
        return _CompletionEncoder(request, body, model, index)

    def error(self, error: RequestError) -> dict[str, Any]:
        return error_body(error)


COMPLETION = Completion()


class _CompletionEncoder(EventEncoder):
    """A chunk per token that shows text; one that shows none gives its id to the next chunk."""

    def __init__(self, request: GenerationRequest, body: Body, model: str, index: int) -> None:
        self._request, self._model, self._index = request, model, index
        self._return_tokens = boolean(body, "return_tokens")
        self._seed = request.sampling.seed
        self._evaluated = self._predicted = 0
        self._slot = -1
        self._unshown: list[int] = []
        self._new_line = False

    def event(self, event: Event) -> bytes:
        if not isinstance(event, Token):
            if isinstance(event, Accepted):
                self._evaluated, self._seed = event.prompt_tokens, event.seed
            elif isinstance(event, Started | Resumed):
                self._slot = event.slot
        return super().event(event)

    def token(self, token: Token) -> bytes:
        self._predicted += 1
        self._unshown.append(token.token)
        return self._chunk(token.text) if token.text else b""

    def _chunk(self, text: str) -> bytes:
        ids = ",".join(map(str, self._unshown))
        self._unshown.clear()
        self._new_line = self._new_line or "\n" in text
        return (
            f'data: {{"index":{self._index},"content":{sse.dumps(text)},"tokens":[{ids}],"stop":false,'
            f'"id_slot":{self._slot},"tokens_predicted":{self._predicted},'
            f'"tokens_evaluated":{self._evaluated}}}\n\n'
        ).encode()

    def ended(self, finished: Finished) -> bytes:
        held_back = self._chunk(finished.text) if finished.text else b""
        return held_back + sse.data(self._final(finished, "", [], self._new_line))

    def closing(self, usage: Usage) -> bytes:
        return b""

    def failure(self, error: RequestError) -> bytes:
        return sse.data(error_body(error))

    def result(self, events: Sequence[Event]) -> dict[str, Any]:
        text, finished = outcome(events)
        tokens = [event.token for event in events if isinstance(event, Token)] if self._return_tokens else []
        for event in events:
            if isinstance(event, Accepted):
                self._seed = event.seed
        return self._final(finished, text, tokens, "\n" in text)

    def merged(self, results: Sequence[dict[str, Any]], usage: Usage) -> Any:
        return list(results)

    def _final(self, finished: Finished, content: str, tokens: list[int], new_line: bool) -> dict[str, Any]:
        prompt = self._request.prompt
        return {
            "index": self._index,
            "content": content,
            "tokens": tokens,
            "id_slot": finished.slot,
            "stop": True,
            "model": self._model,
            "tokens_predicted": finished.completion_tokens,
            "tokens_evaluated": finished.prompt_tokens,
            "generation_settings": generation_settings(self._request, self._seed),
            "prompt": list(prompt) if isinstance(prompt, tuple) else prompt,
            "has_new_line": new_line,
            "truncated": finished.truncated,
            "stop_type": finished.stop_type,
            "stopping_word": finished.stopping_word,
            # The last token is never decoded, so that it has no cell.
            "tokens_cached": finished.prompt_tokens + max(finished.completion_tokens - 1, 0),
            "timings": finished.timings.to_dict(),
        }
