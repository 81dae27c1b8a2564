"""From a job to a sequence that can run, or to the reason why it cannot. No byte is sent before this."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from inference.engine.llama import Model
from inference.engine.sampling import Sampler
from inference.engine.sequence import Sequence
from inference.engine.text import TextAssembler
from inference.messages import Accepted, Answer, Failed, GenerationRequest, Job

from .chat_template import ChatTemplate, TemplateFailure

LONG = 20_000  # characters of a text from which it is worth while to see whether it can fit
NO_SEEDS: Mapping[str, int] = MappingProxyType({})


class Refused(Exception):
    """The job is not run; `failed` says why."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.message)
        self.failed = failed


def refuse(message: str, type: str = "invalid_request_error", **extra: object) -> Refused:
    return Refused(Failed(400, type, message, extra))


class Intake:
    """Applies the template, tokenises and validates. Safe beside the decode thread: it reads only."""

    def __init__(self, model: Model, template: ChatTemplate, n_ctx_seq: int) -> None:
        self.model, self.template, self.n_ctx_seq = model, template, n_ctx_seq

    def generations(self, job: Job, seeds: Mapping[str, int] = NO_SEEDS) -> list[tuple[Accepted, Sequence]]:
        """Each of a job's siblings, in order: all of them, or none. `seeds` are those that some had in an
        earlier life. Raises Refused with the error that the client is to see."""
        request = GenerationRequest.from_dict(job.body)
        choices = request.choices()
        prompts: list[list[int]] = []
        for choice in choices[:: request.n]:
            try:
                prompts.append(self._tokens(choice, job.submitted_at))
            except Refused as refused:
                if not request.prompts:
                    raise
                failed = refused.failed
                message = f"prompt {len(prompts)}: {failed.message}"
                raise Refused(replace(failed, message=message)) from refused
        return [
            self._sequence(id, job, choice, prompts[index // request.n].copy(), seeds.get(id, -1))
            for index, (id, choice) in enumerate(zip(job.generations(), choices, strict=True))
        ]

    def _tokens(self, request: GenerationRequest, asked_at: float) -> list[int]:
        """The prompt of a request for one choice, once it is known to fit."""
        tokens = self._prompt(request, asked_at)
        if not tokens:
            raise refuse("the prompt is empty: it has no tokens")
        if len(tokens) >= self.n_ctx_seq:
            raise self._too_long(len(tokens))
        return tokens

    def _too_long(self, n: int, at_least: str = "") -> Refused:
        """Of a prompt of n tokens."""
        return refuse(
            f"the request has {at_least}{n} prompt tokens, which exceeds the available context size of "
            f"{self.n_ctx_seq} tokens; shorten it or start the server with a larger --ctx-size",
            "exceed_context_size_error",
            n_prompt_tokens=n,
            n_ctx=self.n_ctx_seq,
        )

    def _tokenize(self, text: str, *, add_special: bool) -> list[int]:
        """Of a prompt's text. One that can't fit is refused before: it could take minutes."""
        if len(text) > LONG and (longest := self.model.longest_piece):
            n = len(text.encode("utf-8", "surrogatepass")) // longest
            if n >= self.n_ctx_seq:
                raise self._too_long(n, "at least ")
        return self.model.tokenize(text, add_special=add_special, parse_special=True)

    def _sequence(
        self, id: str, job: Job, request: GenerationRequest, tokens: list[int], seed: int
    ) -> tuple[Accepted, Sequence]:
        # A window beyond the model's own is memory for nothing, times the number of choices.
        last_n = min(request.sampling.repeat_last_n, self.model.n_ctx_train)
        params = replace(request.sampling, repeat_last_n=last_n)
        try:
            sampler = Sampler(self.model, params if seed < 0 else replace(params, seed=seed))
        except ValueError as error:
            raise refuse(str(error)) from error
        sampler.accept_prompt(tokens)
        seq = Sequence(
            id=id,
            tokens=tokens,
            sampler=sampler,
            text=TextAssembler(request.stop),
            max_tokens=request.max_tokens,
            owner=job.owner,
            account=job.account,
            use_cache=request.cache_prompt,
            priority=request.priority,
            n_keep=request.n_keep,
            n_discard=request.n_discard,
        )
        return Accepted(len(tokens), sampler.seed, request.max_tokens), seq

    def answer(self, job: Job) -> Answer:
        """The reply to a job that generates nothing. Raises Refused."""
        body = job.body
        if job.kind == "tokenize":
            tokens = self.model.tokenize(
                body["content"],
                add_special=body.get("add_special", False),
                parse_special=body.get("parse_special", True),
            )
            if not body.get("with_pieces"):
                return Answer({"tokens": tokens})
            return Answer({"tokens": [{"id": t, "piece": self._piece(t)} for t in tokens]})
        if job.kind == "detokenize":
            return Answer({"content": self.model.detokenize(self._checked(body["tokens"]))})
        return Answer({"prompt": self._render(body["messages"], job.submitted_at)})

    def _piece(self, token: int) -> str | list[int]:
        """A token's text, or its bytes when they are no whole characters."""
        raw = self.model.piece(token, special=True)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            return list(raw)

    def _prompt(self, request: GenerationRequest, asked_at: float) -> list[int]:
        if request.messages is not None:
            text = self._render(request.messages, asked_at)
            bos = self.model.bos
            special = not (bos and text.startswith(bos))
            return self._tokenize(text, add_special=special)
        if isinstance(request.prompt, str):
            return self._tokenize(request.prompt, add_special=True)
        tokens: list[int] = []
        for part in request.prompt or ():
            if not isinstance(part, str):
                tokens += self._checked([part])
            elif len(tokens) < self.n_ctx_seq:
                tokens += self._tokenize(part, add_special=not tokens)
            else:
                raise self._too_long(len(tokens), "at least ")
        return tokens

    def _checked(self, tokens: list[int]) -> list[int]:
        for token in tokens:
            if not 0 <= token < self.model.n_vocab:
                raise refuse(f"token {token} is not in the vocabulary of {self.model.n_vocab}")
        return tokens

    def _render(self, messages: Iterable[dict[str, Any]], at: float) -> str:
        """The prompt. As with llama-server, an answer that comes last is not closed: the model goes on with
        it."""
        turns = list(messages)
        begun = turns.pop()["content"] if _is_answer(turns) else ""
        if begun and _is_answer(turns):
            raise refuse("only one message of the assistant may come last: it is what the model goes on with")
        try:
            return self.template.render(turns, at) + begun
        except TemplateFailure as error:
            raise refuse(str(error)) from error


def _is_answer(turns: list[dict[str, Any]]) -> bool:
    """Whether the last turn is a text of the assistant's."""
    return bool(turns) and turns[-1]["role"] == "assistant" and not turns[-1].get("tool_calls")
