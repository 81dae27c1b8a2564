"""A client that comes back to its stream: the same request again, with the id of the last event that came."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from inference.auth import Caller, given_key
from inference.broker import streams
from inference.broker.streams import Found
from inference.messages import GenerationRequest
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


class Digests(NamedTuple):
    """Of who asks and for what."""

    owner: str
    body: str


def digests(caller: Caller, headers: Mapping[bytes, bytes], api: str, body: bytes) -> Digests:
    """Of one request. On an open address everybody is the same owner."""
    owner = "" if caller.is_anonymous else sha256(given_key(headers).encode()).hexdigest()
    return Digests(owner, sha256(api.encode() + b"\0" + body).hexdigest())


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


async def find(seen: Seen, asked: Digests) -> Found:
    """The stream that this is a part of, for who asks so now.

    Raises RequestError: 404 when it is another's or gone, 409 when the request is another one.
    """
    found = await streams.find(seen.job_id, len(seen.counts))
    if found is None or found.stream.owner != asked.owner:
        raise UNKNOWN
    if found.stream.body != asked.body:
        raise OTHER_BODY
    return found
