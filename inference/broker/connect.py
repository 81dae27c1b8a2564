"""Where Redis is, and one client for each that asks. Imports no Django: settings read `redis_url`."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import logging
import os
import select
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.exceptions import NoScriptError, OutOfMemoryError, ReadOnlyError, RedisError
from redis.retry import Retry

from inference.options import Options

logger = logging.getLogger(__name__)

AWAY = (RedisError, OSError)
BLOCK_MS = 5000  # how long a read waits for something to come
SOCKET_TIMEOUT = 10  # seconds; longer than BLOCK_MS
MOST_CONNECTIONS = 100  # of a process's event loop; a command more waits for one of them
FIRST_WAIT, LONGEST_WAIT = 0.05, 1.0  # seconds between two attempts while Redis is away

T = TypeVar("T")


def takes_no_writes(error: Exception) -> bool:
    """Whether Redis has refused a write for now, since its disk or its memory is full, it is a replica, or it
    misses its own. Nothing is wrong with what it was given, which can be written later."""
    return isinstance(error, OutOfMemoryError | ReadOnlyError) or str(error).startswith(
        ("MISCONF", "NOREPLICAS")
    )


_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, redis.asyncio.Redis] = WeakKeyDictionary()
_wires: WeakKeyDictionary[asyncio.AbstractEventLoop, _Wire] = WeakKeyDictionary()


def redis_url() -> str:
    """`REDIS_URL`, or the embedded server's Unix socket in the data directory.

    A socket's path is short by law of the kernel, so an embedded server whose data directory is deep
    listens elsewhere and leaves its address in `redis.url`.
    """
    if url := os.environ.get("REDIS_URL"):
        return url
    data_dir = Options.from_env().data_dir.resolve()
    try:
        return (data_dir / "redis.url").read_text().strip()
    except FileNotFoundError:
        return f"unix://{data_dir / 'redis.sock'}"


# Redis has closed its end. Where the kernel has no such event, all that can be read will do: on a connection
# on which no command is under way there should be nothing.
GONE = getattr(select, "POLLRDHUP", select.POLLIN)


async def let_go_if_gone(connection: Any) -> None:
    """Close a connection on which no command is under way if Redis has ended it, however lately, with or
    without a goodbye; the next command opens another.

    redis-py asks only what the event loop has heard of, and of that not whether the connection was reset.
    The kernel knows at once.
    """
    reader, writer = connection._reader, connection._writer
    if reader is None or writer is None:
        return
    is_gone = writer.transport.is_closing() or reader.at_eof() or reader.exception() is not None
    if not is_gone:
        poll = select.poll()
        poll.register(writer.get_extra_info("socket"), GONE)
        is_gone = bool(poll.poll(0))
    if is_gone:
        await connection.disconnect(nowait=True)


class _Pool(redis.asyncio.BlockingConnectionPool):
    """Lends no connection that Redis has ended."""

    async def ensure_connection(self, connection: Any) -> None:
        await let_go_if_gone(connection)
        await super().ensure_connection(connection)


# No command is sent twice: a job that arrived although its answer was lost would run twice.
def async_client() -> redis.asyncio.Redis:
    """The client of the running event loop."""
    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None:
        pool = _Pool.from_url(
            redis_url(),
            max_connections=MOST_CONNECTIONS,
            timeout=SOCKET_TIMEOUT,
            socket_timeout=SOCKET_TIMEOUT,
            retry=AsyncRetry(NoBackoff(), 0),
        )
        client = _clients[loop] = redis.asyncio.Redis.from_pool(pool)
    return client


class Script:
    """Commands that Redis carries out together, in one round trip that costs the CPU of one command."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._sha = hashlib.sha1(source.encode()).hexdigest()

    async def run(self, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """The script's reply. Raises RedisError or OSError."""
        loop = asyncio.get_running_loop()
        wire = _wires.get(loop) or _wires.setdefault(loop, _Wire())
        try:
            return await wire.ask("EVALSHA", self._sha, len(keys), *keys, *args)
        except NoScriptError:
            return await wire.ask("EVAL", self._source, len(keys), *keys, *args)


class _Wire:
    """A connection without redis-py's client around it, which costs more CPU than the command itself.

    It is opened at the next command after it was lost.
    """

    def __init__(self) -> None:
        pool: Any = redis.asyncio.ConnectionPool.from_url(
            redis_url(), socket_timeout=None, retry=AsyncRetry(NoBackoff(), 0)
        )
        self.connection: Any = pool.make_connection()
        self._turn = asyncio.Lock()

    async def ask(self, *command: Any) -> Any:
        """The reply to one command. Raises RedisError or OSError, after which the connection is a new one
        unless it was an answer."""
        async with self._turn, asyncio.timeout(SOCKET_TIMEOUT):
            await let_go_if_gone(self.connection)
            await self.connection.send_command(*command)
            return await self.connection.read_response()


@functools.cache
def sync_client() -> redis.Redis:
    """The client of this process's threads; redis-py keeps a connection for each that is at work, and asks
    the kernel whether it is still there before it lends it."""
    return redis.Redis.from_url(redis_url(), socket_timeout=SOCKET_TIMEOUT, retry=Retry(NoBackoff(), 0))


def layer_host() -> dict[str, Any]:
    """What the channel layer's connections are made from. What it sends may come twice, so it tries again
    where Redis has ended the connection: a subscription that failed would be a request that fails."""
    return {"address": redis_url(), "retry": AsyncRetry(NoBackoff(), 1)}


async def close() -> None:
    """Close the running loop's connections; the next use opens new ones."""
    loop = asyncio.get_running_loop()
    if client := _clients.pop(loop, None):
        await client.aclose()
    if wire := _wires.pop(loop, None):
        await wire.connection.disconnect()


async def patiently(action: Callable[[], Awaitable[T]]) -> T:
    """Do `action` until Redis has answered, however long that takes. Says so once."""
    wait = FIRST_WAIT
    while True:
        try:
            result = await action()
        except AWAY as error:
            if wait == FIRST_WAIT:
                logger.warning("Redis is away, waiting for it: %s", error)
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)
        else:
            if wait > FIRST_WAIT:
                logger.info("Redis is back")
            return result


def entries(reply: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """The entries in the reply of a read from one stream."""
    return list(reply[0][1]) if reply else []
