"""How often somebody may do something, such as sign in, in a window of time.

Attempts to sign in are counted for an account from one address, and for all accounts from one address. Nobody
elsewhere is kept out by them, and nobody for longer than the window.
"""

from __future__ import annotations

import hashlib
from typing import Any

from .connect import sync_client
from .keys import attempts

WINDOW_S = 300  # from the first attempt
OF_ACCOUNT = 10  # from one address
OF_ADDRESS = 100

# An attempt is counted before the password is looked at, so that many at once are no way around.
# ARGV: the window, then for each key how many there may be.
COUNT = """
local wait = 0
for i, key in ipairs(KEYS) do
  local n = redis.call('INCR', key)
  if n == 1 then
    redis.call('EXPIRE', key, ARGV[1])
  end
  if n > tonumber(ARGV[i + 1]) then
    wait = math.max(wait, redis.call('TTL', key), 1)
  end
end
return wait
"""

FORGET = """
redis.call('DEL', KEYS[1])
if redis.call('EXISTS', KEYS[2]) == 1 then
  redis.call('DECR', KEYS[2])
end
"""


def count(account: str, address: str) -> int:
    """Count an attempt to sign in; the seconds to wait before the next, or 0 when this one may be made. For a
    thread.

    Raises RedisError or OSError while Redis is away.
    """
    return _count(WINDOW_S, {_of(account, address): OF_ACCOUNT, _of(address): OF_ADDRESS})


def forget(account: str, address: str) -> None:
    """The attempt was right: it counts no more, and nor do those before it for this account."""
    sync_client().register_script(FORGET)((_of(account, address), _of(address)), ())


def once_more(what: str, who: str, most: int, window: int = WINDOW_S) -> int:
    """Count that somebody does something that may be done so often in the window (seconds); as `count`."""
    return _count(window, {_of("", what, who): most})


def _count(window: int, limits: dict[str, int]) -> int:
    wait: Any = sync_client().register_script(COUNT)(tuple(limits), (window, *limits.values()))
    return int(wait)


def _of(*parts: str) -> str:
    # Of one length whatever somebody types, and no list of names for who reads Redis.
    return attempts(hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest())
