"""The API: generations over HTTP, and what the service tells of itself.

Streams carry SSE comments: notices of parks, and keepalives in every other silence. The request header
`X-Berth-Notices: off` (or `0`, `false`), or the API key's own setting, turns all of them off, for
clients that take comments for errors; then a stream is `data:` lines and nothing else.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from django.conf import settings

from inference import limits, siblings, stream
from inference.auth import Caller, authenticate
from inference.broker import occupancy
from inference.broker.hub import hub
from inference.http import StreamConsumer
from inference.messages import Answer, Event, Failed, GenerationRequest, Job, JobKind
from inference.options import Options
from inference.revocation import as_long_as
from inference.wire import llamacpp, openai, status
from inference.wire.api import Api, Defaults, Encoder
from inference.wire.errors import RequestError
from inference.wire.siblings import SiblingsEncoder

Snapshot = dict[str, Any]


def options() -> Options:
    found: Options = settings.BERTH
    return found


def serving(snapshots: list[Snapshot]) -> Snapshot:
    """The first worker that is ready; raises RequestError (503) if none is."""
    for snapshot in snapshots:
        if snapshot["state"] == "ready":
            return snapshot
    code, body = status.health(snapshots)
    raise RequestError(code, "", body["error"]["message"])


def defaults(alias: str) -> Defaults:
    found = options()
    return Defaults(
        temperature=found.temp,
        seed=found.seed,
        max_tokens=found.n_predict,
        model=alias,
        keep=found.keep,
        max_choices=found.max_choices,
        longest=found.longest,
    )


class Work(StreamConsumer):
    """A request that a worker answers. When its client leaves, in whatever state, the work is cancelled."""

    look_every = stream.LOOK_EVERY
    dead_after = stream.DEAD_AFTER

    def running(
        self, job: Job, record: dict[str, Any] | None
    ) -> AbstractAsyncContextManager[stream.Progress]:
        return stream.running(job, record, look_every=self.look_every, dead_after=self.dead_after)

    async def rest(self, progress: stream.Progress) -> list[Event]:
        """All events up to the last."""
        events: list[Event] = []
        while not progress.is_over:
            event = await progress.next(float("inf"))
            if event is not None:
                events.append(event)
        return events


class Generate(Work):
    """A generation in the format of one API, as a stream or as one JSON body."""

    api: Api
    parked_every = stream.PARKED_EVERY
    encoder: Encoder | SiblingsEncoder

    def error_body(self, error: RequestError) -> dict[str, Any]:
        return self.api.error(error)

    def stream_error(self, error: RequestError) -> bytes:
        return self.encoder.failure(error)

    async def handle(self, body: bytes) -> None:
        caller = await authenticate(self.headers, self.address)
        found = self.json(body)
        usual = defaults(options().alias)
        usual = usual._replace(priority=caller.priority, longest=caller.longest(usual.longest))
        request = self.api.parse(found, usual)
        caller.check_priority(request.priority)
        snapshots = await occupancy.get_all()
        alias = serving(snapshots)["model"]["alias"]
        job = Job(
            id=uuid.uuid4().hex,
            kind="generate",
            body=request.to_dict(),
            reply_to=hub().group,
            owner=caller.name,
            submitted_at=time.time(),
        )
        record = {
            "api": self.api.name,
            "model": alias,
            "stream": request.stream,
            "priority": request.priority,
            "user_id": caller.user_id,
            "key_id": caller.key_id,
        }
        await limits.admit(job.id, request.n_choices, caller.accounts, snapshots)
        about: dict[str, Any] = {"id": job.id, "model": alias, "created": int(time.time())}
        async with as_long_as(caller.grant):
            if request.n_choices > 1:
                several = SiblingsEncoder(self.api, request, found, **about)
                await self._run_siblings(job, record, several, request, caller)
            else:
                await self._run(job, record, self.api.encoder(request, found, **about), request, caller)

    async def _run(
        self,
        job: Job,
        record: dict[str, Any],
        encoder: Encoder,
        request: GenerationRequest,
        caller: Caller,
    ) -> None:
        self.encoder = encoder
        async with self.running(job, record) as progress:
            if request.stream:
                await stream.relay(progress, encoder, self.send, **self._comments(caller))
                return
            events = await self.rest(progress)
        await self.send_json(200, encoder.result(events))

    async def _run_siblings(
        self,
        job: Job,
        record: dict[str, Any],
        encoder: SiblingsEncoder,
        request: GenerationRequest,
        caller: Caller,
    ) -> None:
        self.encoder = encoder
        intervals = {"look_every": self.look_every, "dead_after": self.dead_after}
        async with siblings.running(job, record, **intervals) as running:
            if request.stream:
                await siblings.relay(running, encoder, self.send, **self._comments(caller))
                return
            events = await running.rest()
        await self.send_json(200, encoder.result(events))

    def _comments(self, caller: Caller) -> dict[str, Any]:
        """How a stream is relayed to this caller."""
        interval = options().sse_ping_interval
        return {
            "arrived": self.arrived,
            "ping_every": interval if interval > 0 else None,
            "parked_every": self.parked_every,
            "notices": caller.notices and not self._notices_off(),
        }

    def _notices_off(self) -> bool:
        return self.headers.get(b"x-berth-notices", b"").strip().lower() in (b"off", b"0", b"false")


class ChatCompletions(Generate):
    """POST /v1/chat/completions, /chat/completions"""

    api = openai.CHAT


class Completions(Generate):
    """POST /v1/completions"""

    api = openai.COMPLETIONS


class Completion(Generate):
    """POST /completion, /completions"""

    api = llamacpp.COMPLETION


class Ask(Work):
    """A question to the model that is no generation."""

    kind: JobKind
    parse: Callable[[Any], dict[str, Any]]

    def error_body(self, error: RequestError) -> dict[str, Any]:
        return llamacpp.error_body(error)

    async def handle(self, body: bytes) -> None:
        caller = await authenticate(self.headers, self.address)
        question = type(self).parse(self.json(body))
        snapshots = await occupancy.get_all()
        serving(snapshots)
        job = Job(uuid.uuid4().hex, self.kind, question, hub().group, caller.name, time.time())
        await limits.admit(job.id, 1, (), snapshots)  # no generation of the caller's, but in the queue
        async with self.running(job, None) as progress:
            last = (await self.rest(progress))[-1]
        if isinstance(last, Answer):
            await self.send_json(200, last.data)
        elif isinstance(last, Failed):
            raise RequestError.from_failed(last)
        else:
            raise TypeError(f"a {self.kind} job ended in {last.kind}")


class Tokenize(Ask):
    """POST /tokenize"""

    kind = "tokenize"
    parse = staticmethod(llamacpp.parse_tokenize)


class Detokenize(Ask):
    """POST /detokenize"""

    kind = "detokenize"
    parse = staticmethod(llamacpp.parse_detokenize)


class ApplyTemplate(Ask):
    """POST /apply-template"""

    kind = "apply_template"
    parse = staticmethod(llamacpp.parse_apply_template)
