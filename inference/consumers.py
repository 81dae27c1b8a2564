"""The API: generations over HTTP, and what the service tells of itself.

Streams carry SSE comments: notices of parks, and keepalives in every other silence; and ids, with which a
client that lost its connection goes on. The request header `X-Berth-Notices: off` (or `0`, `false`), or the
API key's own setting, turns all of them off, for clients that take comments for errors; then a stream is
`data:` lines and nothing else.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

from django.conf import settings

from inference import drain, limits, resume, siblings, stream
from inference.auth import authenticate
from inference.broker import occupancy, streams
from inference.broker.hub import hub
from inference.broker.streams import Stream
from inference.http import StreamConsumer
from inference.messages import Accepted, Answer, Event, Failed, GenerationRequest, Job, JobKind
from inference.options import Options
from inference.revocation import as_long_as
from inference.wire import llamacpp, openai, status
from inference.wire.api import Api, Defaults, Encoder
from inference.wire.errors import RequestError
from inference.wire.ids import Ids
from inference.wire.siblings import SiblingsEncoder

Snapshot = dict[str, Any]


def options() -> Options:
    found: Options = settings.BERTH
    return found


def serving(snapshots: list[Snapshot]) -> Snapshot:
    """The first worker that is ready; raises RequestError (503) if none is, or nothing new is taken here."""
    if drain.has_begun():
        raise drain.RESTARTING
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
        self,
        job: Job,
        record: dict[str, Any] | None,
        kept: Stream | None = None,
        *,
        is_resumed: bool = False,
    ) -> AbstractAsyncContextManager[stream.Progress]:
        return stream.running(
            job,
            record,
            kept,
            is_resumed=is_resumed,
            look_every=self.look_every,
            dead_after=self.dead_after,
        )

    async def rest(self, progress: stream.Progress) -> list[Event]:
        """All events up to the last."""
        events: list[Event] = []
        while not progress.is_over:
            event = await progress.next(float("inf"))
            if isinstance(event, Accepted):  # it may begin anew
                events.clear()
            if event is not None:
                events.append(event)
        return events


class _Asked(NamedTuple):
    """What one request comes to."""

    job: Job
    record: dict[str, Any]
    request: GenerationRequest
    ids: Ids
    notices: bool  # comments and ids, in a stream
    kept: Stream | None  # what is kept for who takes the stream up again; None: there is no stream
    is_resumed: bool  # a stream is taken up again, and nothing is submitted
    over: Collection[str]  # of a stream's generations, those that have their row under another id


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
        usual = defaults(options().alias)
        usual = usual._replace(priority=caller.priority, longest=caller.longest(usual.longest))
        found, request = await self.read(body, lambda found: (found, self.api.parse(found, usual)))
        caller.check_priority(request.priority)
        digests = resume.digests(caller, self.headers, self.api.name, body)
        seen = resume.last_seen(self.headers, request)
        taken_up = await resume.find(seen, digests) if seen else None
        if taken_up is None or taken_up.is_cancelled:
            id, snapshots = uuid.uuid4().hex, await occupancy.get_all()
            model = serving(snapshots)["model"]["alias"]
            await limits.admit(id, request.n_choices, caller.accounts, snapshots)
            if taken_up is not None:
                taken_up = await streams.renew(taken_up, request.n_choices, id)
        if taken_up is None:
            made = Stream(*digests, shown_id=id, model=model, created=int(time.time()))
        else:
            id, made = taken_up.job_id, taken_up.stream
        job = Job(
            id=id,
            kind="generate",
            body=request.to_dict(),
            reply_to=hub().group,
            owner=caller.name,
            account=caller.account,
            submitted_at=time.time(),
            goes_on=taken_up is not None and taken_up.is_cancelled,
        )
        record = {
            "api": self.api.name,
            "model": made.model,
            "stream": request.stream,
            "priority": request.priority,
            "user_id": caller.user_id,
            "key_id": caller.key_id,
        }
        about: dict[str, Any] = {"id": made.shown_id, "model": made.model, "created": made.created}
        notices = caller.notices and not self._notices_off()
        ids = Ids(id, request.n_choices, seen.counts if seen else (), shown=notices)
        kept = made if request.stream else None
        over = taken_up.over if taken_up else ()
        asked = _Asked(job, record, request, ids, notices, kept, is_resumed=seen is not None, over=over)
        async with as_long_as(caller.grant):
            if request.n_choices > 1:
                await self._run_siblings(asked, SiblingsEncoder(self.api, request, found, **about))
            else:
                await self._run(asked, self.api.encoder(request, found, **about))
        if request.stream and not self.is_open:
            await self._nothing_left(ids)

    async def _run(self, asked: _Asked, encoder: Encoder) -> None:
        self.encoder = encoder
        async with self.running(asked.job, asked.record, asked.kept, is_resumed=asked.is_resumed) as progress:
            if asked.request.stream:
                await stream.relay(progress, encoder, asked.ids, self.send, self._comments(asked))
                return
            events = await self.rest(progress)
        await self.send_json(200, encoder.result(events))

    async def _run_siblings(self, asked: _Asked, encoder: SiblingsEncoder) -> None:
        self.encoder = encoder
        async with siblings.running(
            asked.job,
            asked.record,
            asked.kept,
            is_resumed=asked.is_resumed,
            over=asked.over,
            look_every=self.look_every,
            dead_after=self.dead_after,
        ) as running:
            if asked.request.stream:
                await siblings.relay(running, encoder, asked.ids, self.send, self._comments(asked))
                return
            events = await running.rest()
        await self.send_json(200, encoder.result(events))

    async def _nothing_left(self, ids: Ids) -> None:
        """To a client that has everything: 204, at which one that comes back by itself stops."""
        if ids.is_behind:
            raise RequestError(400, "", "Last-Event-ID is beyond the end of its stream.")
        await self.send_nothing()

    def _comments(self, asked: _Asked) -> stream.Comments:
        interval = options().sse_ping_interval
        return stream.Comments(
            arrived=self.arrived,
            ping_every=interval if interval > 0 else None,
            parked_every=self.parked_every,
            is_on=asked.notices,
        )

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
        question = await self.read(body, type(self).parse)
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
