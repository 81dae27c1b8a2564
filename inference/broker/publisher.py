"""The worker's mouth: events go to their logs, then to the web processes that follow them."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from channels.layers import get_channel_layer
from redis.exceptions import ResponseError

from inference.messages import TERMINAL, Answer, Event, Token, encode_event

from . import admission, lease, log, records
from .connect import Script, async_client, patiently, takes_no_writes
from .keys import INCARNATIONS, RECORDS, event_log, stream
from .lease import Lease

logger = logging.getLogger(__name__)

MAX_ROUTES = 10_000  # of generations; the oldest go, and their followers read the log instead

# One command for all that a flush writes and tells: each command more costs the CPU of several tokens.
# KEYS: incarnations, the stream of records, then the logs. ARGV: the token ("": nobody can be fenced) and the
# data it belongs to, the time, the number of records and the records; the number of jobs that are over and
# the jobs; an entry's id, its text and whether its log's life begins or ends, for each log; a channel and a
# message, for each group.
# The reply: what could not be written, or a number, the standing of one that may not write. A Redis that
# takes no writes for now, all of a script or none, is an error: nobody is told of what no log holds.
WRITE_AND_TELL = Script(f"""{lease.STANDING}{admission.RELEASE}
if ARGV[1] ~= '' then
  local is = standing(KEYS[1], ARGV[1], ARGV[2])
  if is ~= {lease.HOLDS} then return is end
end
local failures = {{}}
local function try(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err and not string.find(reply.err, 'equal or smaller', 1, true) then
    local code = string.match(reply.err, '^%u+')
    if code ~= 'ERR' and code ~= 'WRONGTYPE' then error(reply) end
    failures[#failures + 1] = reply.err
  end
end
local at = 5
for _ = 1, tonumber(ARGV[4]) do
  try('XADD', KEYS[2], 'MAXLEN', '~', {records.MAX_RECORDS}, '*', 'r', ARGV[at])
  at = at + 1
end
local jobs = at + tonumber(ARGV[at])
for i = at + 1, jobs do
  release(ARGV[i])
end
at = jobs + 1
for i = 3, #KEYS do
  try('XADD', KEYS[i], ARGV[at], 'e', ARGV[at + 1], 't', ARGV[3])
  if ARGV[at + 2] == '1' then
    try('EXPIRE', KEYS[i], {log.KEEP_S})
  end
  at = at + 3
end
for i = at, #ARGV, 2 do
  try('PUBLISH', ARGV[i], ARGV[i + 1])
end
return failures
""")


class Publisher:
    """Belongs to one event loop. Waits for Redis whenever it is away; never raises for it.

    With a lease it is kept what each log holds whose generation is not over, and written again when Redis
    comes back without its data.
    """

    def __init__(self, worker_id: str, lease: Lease | None = None) -> None:
        self._worker = worker_id
        self._lease = lease
        self._written: dict[str, list[tuple[str, str, int]]] = {}  # entry id, text, time; by generation
        self._routes: OrderedDict[str, set[str]] = OrderedDict()

    def route(self, id: str, group: str) -> None:
        """Tell this channel group of the generation's events, too."""
        self._routes.setdefault(id, set()).add(group)
        if len(self._routes) > MAX_ROUTES:
            self._routes.popitem(last=False)

    def unroute(self, id: str) -> None:
        """Tell nobody any more. `publish` does it after a generation's last event."""
        self._routes.pop(id, None)

    async def publish(self, events: Sequence[tuple[str, int, Event]], over: Sequence[str] = ()) -> None:
        """Write (generation id, sequence number, event) to the logs, then tell the followers; the numbers
        of one generation follow one another.

        One round trip, one entry in each log and one message for each web process. What is written
        already is not written again. The jobs that are `over` with these give their permits back. Raises
        Fenced when others run what this process ran.
        """
        if not events:
            return
        entries: dict[str, log.Entry] = {}
        new_life: set[str] = set()  # of a log: it begins or is complete
        ended: list[str] = []
        recorded: list[str] = []
        for id, seq, event in events:
            encoded = encode_event(event)
            written = entries[id][1] if id in entries else []
            written.append(encoded)
            entries[id] = (seq, written)
            if seq == 1:
                new_life.add(id)
            if type(event) is Token:
                continue
            if isinstance(event, TERMINAL):
                new_life.add(id)
                ended.append(id)
            if not isinstance(event, Answer):  # it is nobody's record, and holds text
                recorded.append(records.encode(id, event.kind, self._worker, encoded[1]))
        keys = [INCARNATIONS, RECORDS]
        now = int(1000 * time.time())
        args: list[Any] = [now, len(recorded), *recorded, len(over), *over]
        for id, (last, written) in entries.items():
            text = log.encode(written)
            keys.append(event_log(id))
            args += (f"{last}-0", text, int(id in new_life))
            if self._lease is not None:
                self._written.setdefault(id, []).append((f"{last}-0", text, now))
        await self._write(keys, args + self._messages(entries))
        for id in ended:
            self.unroute(id)
            self._written.pop(id, None)

    async def _write(self, keys: list[str], args: list[Any]) -> None:
        while True:
            holder = [self._lease.token, self._lease.data] if self._lease else ["", ""]
            standing = await patiently(partial(self._run, keys, holder + args))
            if standing == lease.HOLDS:
                return
            if standing == lease.FENCED:
                raise lease.Fenced
            await self.restore()

    def remember(self, id: str, history: Iterable[log.Dated]) -> None:
        """A generation of another worker goes on here: what its log holds."""
        self._written[id] = [
            (f"{number}-0", log.encode([encode_event(event)]), int(1000 * at))
            for number, event, at in history
        ]

    async def keep(self) -> None:
        """A generation can run, wait or be held for longer than a log is kept: those that are not over live
        on, and so can their streams be taken up."""

        async def renew() -> None:
            pipe = async_client().pipeline(transaction=False)
            for id in self._written:
                pipe.expire(event_log(id), log.KEEP_S)
                pipe.expire(stream(id), log.KEEP_S)
            await pipe.execute()

        await patiently(renew)

    async def restore(self) -> None:
        """Redis has lost its data: write the logs again, and hold the lease."""
        assert self._lease is not None
        logger.warning("Redis came back without its data: %d logs are written again", len(self._written))

        async def write() -> None:
            pipe = async_client().pipeline(transaction=False)
            for id, written in self._written.items():
                for entry, text, at in written:
                    pipe.xadd(event_log(id), {"e": text, "t": at}, id=entry)
                pipe.expire(event_log(id), log.KEEP_S)
            for reply in await pipe.execute(raise_on_error=False):
                if isinstance(reply, ResponseError) and takes_no_writes(reply):
                    raise reply

        await patiently(write)
        await self._lease.register()

    def _messages(self, entries: dict[str, log.Entry]) -> list[Any]:
        """What the channel layer's `group_send` would publish: a channel and a message for each group."""
        groups: dict[str, list[tuple[str, int, list[log.Encoded]]]] = {}
        for id, (last, written) in entries.items():
            for group in self._routes.get(id, ()):
                groups.setdefault(group, []).append((id, last, written))
        layer: Any = get_channel_layer()
        args: list[Any] = []
        for group, told in groups.items():
            message = {"type": "generation.events", "events": told}
            args += (f"{layer.prefix}__group__{group}", layer.serialize(message))
        return args

    async def _run(self, keys: list[str], args: list[Any]) -> int:
        """The standing of this worker; what can never be written is logged. Raises RedisError or OSError."""
        try:
            reply = await WRITE_AND_TELL.run(keys, args)
        except ResponseError as error:
            if takes_no_writes(error):
                raise
            reply = [error]
        if isinstance(reply, int):
            return reply
        for failure in reply:
            logger.error("Events could not be written: %s", failure)
        return lease.HOLDS
