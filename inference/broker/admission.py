"""How much runs and waits, and whose it is: one set of books in Redis for all web processes.

A permit belongs to a job and lives as long as it does: the worker gives it back in the same script that
publishes the job's last event. So a web process that is killed leaks none, and a client that has read the
end of one answer finds room for its next. What was never submitted lapses by itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from .connect import Script, sync_client
from .keys import ADMITTED, IN_FLIGHT, PERMITS

EVERYBODY = "all"
PENDING_S = 30  # from the admission to the submission
LAPSES_S = 86_400  # a permit whose job Redis has lost; a generation that old counts no more
LAPSE_BATCH = 100

# A function for scripts: a permit that was given back already is none.
RELEASE = f"""
local function release(id)
  local permit = redis.call('HGET', '{PERMITS}', id)
  redis.call('HDEL', '{PERMITS}', id)
  redis.call('ZREM', '{ADMITTED}', id)
  local n
  for word in string.gmatch(permit or '', '%S+') do
    if not n then
      n = tonumber(word) or 0
    else
      local left = redis.pcall('HINCRBY', '{IN_FLIGHT}', word, -n)
      if type(left) == 'table' or left <= 0 then  -- none, or no number
        redis.call('HDEL', '{IN_FLIGHT}', word)
      end
    end
  end
end
"""
# ARGV: the job, its number of generations, then a name and a limit for each account.
# The reply: which account is full, counted from 1, and what it has; 0 when there was room.
ADMIT_SOURCE = f"""{RELEASE}
local now = tonumber(redis.call('TIME')[1])
for _, id in ipairs(redis.call('ZRANGEBYSCORE', '{ADMITTED}', '-inf', now, 'LIMIT', 0, {LAPSE_BATCH})) do
  release(id)
end
local id, n = ARGV[1], tonumber(ARGV[2])
if redis.call('HEXISTS', '{PERMITS}', id) == 1 then
  return {{0, 0}}
end
local permit = ARGV[2]
for i = 3, #ARGV, 2 do
  local used = tonumber(redis.call('HGET', '{IN_FLIGHT}', ARGV[i]) or '0')
  local limit = tonumber(ARGV[i + 1])
  if limit >= 0 and used + n > limit then
    return {{(i - 1) / 2, used}}
  end
  permit = permit .. ' ' .. ARGV[i]
end
for i = 3, #ARGV, 2 do
  redis.call('HINCRBY', '{IN_FLIGHT}', ARGV[i], n)
end
redis.call('HSET', '{PERMITS}', id, permit)
redis.call('ZADD', '{ADMITTED}', now + {PENDING_S}, id)
return {{0, 0}}
"""
RELEASE_SOURCE = f"""{RELEASE}
release(ARGV[1])
"""
ADMIT = Script(ADMIT_SOURCE)


class Account(NamedTuple):
    """Who is counted, `kind:name` without spaces, and how many generations it may have; -1: any number."""

    name: str
    limit: int


class Full(Exception):
    """This account has no room for so many more; it has `used`. Nothing was changed."""

    def __init__(self, account: Account, used: int) -> None:
        super().__init__(account.name)
        self.account, self.used = account, used


async def admit(job_id: str, n: int, accounts: Sequence[Account]) -> None:
    """Take room for a job's n generations in all of these accounts, or in none. A job that has its permit
    keeps it. Raises Full, and RedisError or OSError while Redis is away."""
    _check(accounts, await ADMIT.run((), _arguments(job_id, n, accounts)))


def admit_sync(job_id: str, n: int, accounts: Sequence[Account]) -> None:
    """`admit` for a thread."""
    _check(accounts, sync_client().register_script(ADMIT_SOURCE)((), _arguments(job_id, n, accounts)))


def release_sync(job_id: str) -> None:
    """Give back what a job that will not run has taken. Raises RedisError or OSError while Redis is away."""
    sync_client().register_script(RELEASE_SOURCE)((), (job_id,))


def keep(pipe: Any, job_id: str) -> None:
    """Its job is submitted: the permit, if it has one, stays until the job is over. Adds to a pipeline."""
    pipe.zadd(ADMITTED, {job_id: time.time() + LAPSES_S}, xx=True)


def _arguments(job_id: str, n: int, accounts: Sequence[Account]) -> list[Any]:
    return [job_id, n, *(part for account in accounts for part in account)]


def _check(accounts: Sequence[Account], reply: Any) -> None:
    full, used = reply
    if full:
        raise Full(accounts[full - 1], used)
