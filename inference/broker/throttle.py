"""How often somebody may try to sign in: so many times in a window, for an account from one address, and for
all accounts from one address. Nobody elsewhere is kept out by it, and nobody for longer than the window."""

from __future__ import annotations

import hashlib
from typing import Any

from .connect import sync_client
from .keys import attempts

WINDOW_S = 300  # from the first attempt
OF_ACCOUNT = 10  # from one address
OF_ADDRESS = 100

# An attempt is counted before the password is looked at, so that many at once are no way around.
COUNT = f"""
local wait = 0
for i, key in ipairs(KEYS) do
  local n = redis.call('INCR', key)
  if n == 1 then
    redis.call('EXPIRE', key, {WINDOW_S})
  end
  if n > tonumber(ARGV[i]) then
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
    """Count an attempt; the seconds to wait before the next, or 0 when this one may be made. For a thread.

    Raises RedisError or OSError while Redis is away.
    """
    keys = (_of(account, address), _of(address))
    wait: Any = sync_client().register_script(COUNT)(keys, (OF_ACCOUNT, OF_ADDRESS))
    return int(wait)


def forget(account: str, address: str) -> None:
    """The attempt was right: it counts no more, and nor do those before it for this account."""
    sync_client().register_script(FORGET)((_of(account, address), _of(address)), ())


def _of(*parts: str) -> str:
    # Of one length whatever somebody types, and no list of names for who reads Redis.
    return attempts(hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest())
