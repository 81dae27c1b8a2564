"""The worker's mouth: events go to their logs, then to the web processes that follow them."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from channels.layers import get_channel_layer
from redis.exceptions import ResponseError

from inference.messages import TERMINAL, Answer, Event, Token, encode_event

from . import admission, log, records
from .connect import Script, patiently
from .keys import RECORDS, event_log

logger = logging.getLogger(__name__)

MAX_ROUTES = 10_000  # of generations; the oldest go, and their followers read the log instead

# One command for all that a flush writes and tells: each command more costs the CPU of several tokens.
# KEYS: the stream of records, then the logs. ARGV: the number of records and the records; the number of jobs
# that are over and the jobs; an entry's id, its text and whether its log's life begins or ends, for each log;
# a channel and a message, for each group.
WRITE_AND_TELL = Script(f"""{admission.RELEASE}
local failures = {{}}
local function try(...)
  local reply = redis.pcall(...)
  if type(reply) == 'table' and reply.err and not string.find(reply.err, 'equal or smaller', 1, true) then
    failures[#failures + 1] = reply.err
  end
end
local at = 2
for _ = 1, tonumber(ARGV[1]) do
  try('XADD', KEYS[1], 'MAXLEN', '~', {records.MAX_RECORDS}, '*', 'r', ARGV[at])
  at = at + 1
end
local jobs = at + tonumber(ARGV[at])
for i = at + 1, jobs do
  release(ARGV[i])
end
at = jobs + 1
for i = 2, #KEYS do
  try('XADD', KEYS[i], ARGV[at], 'e', ARGV[at + 1])
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
    """Belongs to one event loop. Waits for Redis whenever it is away; never raises for it."""

    def __init__(self, worker_id: str) -> None:
        self._worker = worker_id
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
        already is not written again. The jobs that are `over` with these give their permits back.
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
        keys = [RECORDS]
        args: list[Any] = [len(recorded), *recorded, len(over), *over]
        for id, (last, written) in entries.items():
            keys.append(event_log(id))
            args += (f"{last}-0", log.encode(written), int(id in new_life))
        await patiently(lambda: self._run(keys, args + self._messages(entries)))
        for id in ended:
            self.unroute(id)

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

    async def _run(self, keys: list[str], args: list[Any]) -> None:
        try:
            failures = await WRITE_AND_TELL.run(keys, args)
        except ResponseError as error:
            failures = [error]
        for failure in failures:
            logger.error("Events could not be written: %s", failure)
