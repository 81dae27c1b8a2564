"""Which worker process runs what: each is an incarnation with a fencing token, and holds a lease on its jobs.

An incarnation may publish as long as its token is in the hash of incarnations. It leaves the hash when it
gives up, when a process of the same worker starts after it, or when another takes its jobs because its
lease has run out. Whether it is in there is looked up in the same script that publishes or takes: of two
processes that believe a generation is theirs, one alone can write. A lease that has run out and that
nobody took is simply renewed, so that a machine that slept, or a Redis that was away, ends nobody.

Redis' own clock decides, so that the clocks of two machines need not agree.
"""

from __future__ import annotations

import logging
import uuid

from . import control
from .connect import AWAY, Script, async_client, patiently, sync_client
from .keys import INCARNATIONS, LAST_TOKEN, LEASE, SUSPECTS

logger = logging.getLogger(__name__)

LASTS_S = 10  # a machine that is busy is not dead
RENEW_EVERY_S = 2.0

# Lua that others put into their scripts: the time in milliseconds; and `standing(incarnations, token, data)`,
# which is HOLDS, FENCED, or FORGOTTEN: Redis has lost its data, and with it who held what.
HOLDS, FENCED, FORGOTTEN = 0, 1, 2
STANDING = f"""
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function standing(incarnations, token, data)
  local found = redis.call('HMGET', incarnations, token, 'data')
  if found[1] then return {HOLDS} end
  return found[2] == data and {FENCED} or {FORGOTTEN}
end
"""

# KEYS: incarnations, the counter. ARGV: the worker's id, a name for the data if it is new.
# The counter begins with the time, so that it grows also when Redis has lost its data.
ACQUIRE = Script(f"""{STANDING}
local found = redis.call('HGETALL', KEYS[1])
for i = 1, #found, 2 do
  if found[i] ~= 'data' and found[i + 1] == ARGV[1] then redis.call('HDEL', KEYS[1], found[i]) end
end
redis.call('SETNX', KEYS[2], redis.call('TIME')[1])
local token = string.format('%.0f', redis.call('INCR', KEYS[2]))
redis.call('HSETNX', KEYS[1], 'data', ARGV[2])
redis.call('HSET', KEYS[1], token, ARGV[1])
redis.call('SET', '{LEASE}' .. token, now(), 'EX', {LASTS_S})
return {{token, redis.call('HGET', KEYS[1], 'data')}}
""")

# KEYS: incarnations, the lease. ARGV: token, data.
RENEW = Script(f"""{STANDING}
local is = standing(KEYS[1], ARGV[1], ARGV[2])
if is == {HOLDS} and redis.call('EXPIRE', KEYS[2], {LASTS_S}) == 0 then
  redis.call('SET', KEYS[2], now(), 'EX', {LASTS_S})
end
return is
""")

# KEYS: incarnations, the lease, the counter. ARGV: token, worker, a name for the data if it is new.
REGISTER = Script(f"""{STANDING}
if tonumber(redis.call('GET', KEYS[3]) or 0) < tonumber(ARGV[1]) then redis.call('SET', KEYS[3], ARGV[1]) end
redis.call('HSETNX', KEYS[1], 'data', ARGV[3])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('SET', KEYS[2], now(), 'EX', {LASTS_S})
return redis.call('HGET', KEYS[1], 'data')
""")


class Fenced(Exception):
    """Another process has taken over what this one ran: it must end, and can write no more."""


class Lease:
    """That of this process. Belongs to one event loop; `suspect_sync` is for the decode thread."""

    def __init__(self, worker: str, token: str, data: str) -> None:
        self.worker, self.token, self.data = worker, token, data

    @classmethod
    async def acquire(cls, worker: str) -> Lease:
        """Become the worker of that id. Whoever was it can publish no more, and its jobs can be taken."""
        name = uuid.uuid4().hex
        token, data = await patiently(lambda: ACQUIRE.run((INCARNATIONS, LAST_TOKEN), (worker, name)))
        return cls(worker, token.decode(), data.decode())

    async def renew(self) -> bool:
        """Say that this process lives. False: Redis has lost its data. Raises Fenced."""
        keys, args = (INCARNATIONS, LEASE + self.token), (self.token, self.data)
        standing = await patiently(lambda: RENEW.run(keys, args))
        if standing == FENCED:
            raise Fenced
        return bool(standing == HOLDS)

    async def register(self) -> None:
        """Hold the lease in a Redis that has lost its data."""
        keys = (INCARNATIONS, LEASE + self.token, LAST_TOKEN)
        args = (self.token, self.worker, uuid.uuid4().hex)
        self.data = (await patiently(lambda: REGISTER.run(keys, args))).decode()

    async def give_up(self, *, in_order: bool) -> None:
        """Leave the jobs to others, at once; not `in_order`: one of them may be to blame. Raises RedisError
        or OSError while Redis is away."""
        pipe = async_client().pipeline()
        pipe.hdel(INCARNATIONS, self.token)
        pipe.delete(LEASE + self.token)
        if in_order:
            pipe.delete(SUSPECTS + self.token)
        await pipe.execute()
        await control.tell(control.Command("claim", ""))

    # --- suspects -----------------------------------------------------------------------------------

    async def suspect(self, id: str) -> None:
        """Before a job that a dead worker left is read again: if this process dies, it was that job.
        "": it is done with."""
        key = SUSPECTS + self.token
        client = async_client()
        await patiently(lambda: client.hset(key, "intake", id) if id else client.hdel(key, "intake"))

    def suspect_sync(self, id: str) -> None:
        """The same before a generation that a dead worker left is computed again, alone."""
        key = SUSPECTS + self.token
        try:
            if id:
                sync_client().hset(key, "engine", id)
            else:
                sync_client().hdel(key, "engine")
        except AWAY as error:
            logger.warning("It could not be noted that %s is tried again: %s", id or "nothing", error)
