"""A client that comes back to its stream: the same request again, with the id of the last event that came."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from inference.auth import Caller, given_key
from inference.broker import streams
from inference.broker.streams import Stream
from inference.messages import GenerationRequest, sibling_ids
from inference.wire import ids
from inference.wire.errors import RequestError
from inference.wire.ids import Seen

UNKNOWN = RequestError(
    404,
    "",
    "There is no such stream of yours, or no more. Send the request again without Last-Event-ID.",
)
OTHER_BODY = RequestError(
    409, "", "Last-Event-ID names the stream of another request. Repeat the request as it was, byte for byte."
)


def new_stream(
    caller: Caller,
    headers: Mapping[bytes, bytes],
    api: str,
    body: bytes,
    *,
    id: str,
    model: str,
    created: int,
) -> Stream:
    """What is kept of a request, so that who repeats it can take up its stream."""
    owner = "" if caller.is_anonymous else sha256(given_key(headers).encode()).hexdigest()
    return Stream(owner, sha256(api.encode() + b"\0" + body).hexdigest(), id, model, created)


def last_seen(headers: Mapping[bytes, bytes], request: GenerationRequest) -> Seen | None:
    """What the client has of the stream that it takes up; None for a request that is new.

    Raises RequestError (400).
    """
    header = headers.get(b"last-event-id", b"")
    if not header:
        return None
    if not request.stream:
        raise RequestError(400, "", "Only a stream can be taken up again: leave Last-Event-ID away.")
    seen = ids.parse(header)
    if len(seen.counts) != request.n_choices:
        raise OTHER_BODY
    return seen


async def find(seen: Seen, asked: Stream) -> Stream:
    """The stream that this is a part of, for who asked so now.

    Raises RequestError: 404 when it is another's or gone, 409 when the request is another one.
    """
    kept = await streams.find(seen.job_id, sibling_ids(seen.job_id, len(seen.counts)))
    if kept is None or kept.owner != asked.owner:
        raise UNKNOWN
    if kept.body != asked.body:
        raise OTHER_BODY
    return kept
