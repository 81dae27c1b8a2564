"""Where Redis is, and one client for each that asks. Imports no Django: settings read `redis_url`."""

from __future__ import annotations

import asyncio
import functools
import os
from weakref import WeakKeyDictionary

import redis
import redis.asyncio

from inference.options import Options

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, redis.asyncio.Redis] = WeakKeyDictionary()


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


def async_client() -> redis.asyncio.Redis:
    """The client of the running event loop."""
    loop = asyncio.get_running_loop()
    client = _clients.get(loop)
    if client is None:
        client = _clients[loop] = redis.asyncio.Redis.from_url(redis_url())
    return client


@functools.cache
def sync_client() -> redis.Redis:
    """The client of this process's threads; redis-py keeps a connection for each that is at work."""
    return redis.Redis.from_url(redis_url())
