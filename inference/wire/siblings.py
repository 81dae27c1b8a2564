"""The siblings of a request, in one stream or one body: choice `index` is prompt * n + k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from inference.messages import Event, Failed, Finished, GenerationRequest, Preempted, Resumed
from inference.wire import sse
from inference.wire.api import Api, Usage
from inference.wire.errors import RequestError


class SiblingsEncoder:
    """Turns the events of all choices into the bytes of one API. Give it each event once, and those of a
    choice in order."""

    def __init__(
        self,
        api: Api,
        request: GenerationRequest,
        body: dict[str, Any],
        *,
        id: str,
        model: str,
        created: int,
    ) -> None:
        self._choices = [
            api.encoder(choice, body, id=id, model=model, created=created, index=index)
            for index, choice in enumerate(request.choices())
        ]
        self._n = request.n
        self._finished: dict[int, Finished] = {}

    def event(self, index: int, event: Event) -> bytes:
        """The SSE bytes that an event of this choice adds; b"" for none."""
        choice = self._choices[index]
        if isinstance(event, Finished):
            self._finished[index] = event
            return choice.ended(event)
        if isinstance(event, Failed):
            return choice.failure(failure_of(index, event))
        data = choice.event(event)
        return sse.of_choice(data, index) if isinstance(event, Preempted | Resumed) else data

    def closing(self) -> bytes:
        """What follows once no choice goes on; b"" when all have failed, as for one that fails alone."""
        return self._choices[0].closing(usage(self._finished, self._n)) if self._finished else b""

    def result(self, events: Sequence[Sequence[Event]]) -> Any:
        """The non-streaming answer's body, from all events of each choice; raises RequestError if one of
        them failed."""
        results = [choice.result(its) for choice, its in zip(self._choices, events, strict=True)]
        finished = {i: its[-1] for i, its in enumerate(events) if isinstance(its[-1], Finished)}
        return self._choices[0].merged(results, usage(finished, self._n))

    def failure(self, error: RequestError) -> bytes:
        """An error inside an open stream, of the request as a whole."""
        return self._choices[0].failure(error)


def failure_of(index: int, failed: Failed) -> RequestError:
    """What the last event of one choice tells, as an error that names it."""
    error = RequestError.from_failed(failed)
    error.extra = error.extra | {"index": index}
    return error


def usage(finished: Mapping[int, Finished], n: int) -> Usage:
    """What the choices took together. A prompt counts once, however many choices it has."""
    prompts = {index // n: choice for index, choice in sorted(finished.items(), reverse=True)}
    return Usage(
        prompt_tokens=sum(choice.prompt_tokens for choice in prompts.values()),
        completion_tokens=sum(choice.completion_tokens for choice in finished.values()),
        cached_tokens=sum(choice.timings.cache_n for choice in prompts.values()),
    )
