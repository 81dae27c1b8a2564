"""The first command after Redis has ended a connection, in whatever way, finds Redis."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import redis
from channels.layers import get_channel_layer

from inference.broker import connect
from tests.conftest import RedisServer
from tests.e2e.stack import free_port


async def command() -> Any:
    return await connect.async_client().echo("x")


async def pipeline() -> Any:
    pipe: Any = connect.async_client().pipeline(transaction=False)
    return (await pipe.echo("x").execute())[0]


async def transaction() -> Any:
    pipe: Any = connect.async_client().pipeline()
    return (await pipe.echo("x").execute())[0]


async def script() -> Any:
    return await connect.Script("return ARGV[1]").run([], ["x"])


async def command_of_a_thread() -> Any:
    return await asyncio.to_thread(lambda: connect.sync_client().echo("x"))


async def pipeline_of_a_thread() -> Any:
    pipe: Any = connect.sync_client().pipeline()
    return await asyncio.to_thread(lambda: pipe.echo("x").execute()[0])


async def script_of_a_thread() -> Any:
    return await asyncio.to_thread(lambda: connect.sync_client().register_script("return ARGV[1]")([], ["x"]))


WAYS: list[Callable[[], Awaitable[Any]]] = [
    command,
    pipeline,
    transaction,
    script,
    command_of_a_thread,
    pipeline_of_a_thread,
    script_of_a_thread,
]


@pytest.fixture(params=["unix", "tcp"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RedisServer]:
    """A server of its own, and this process's clients are its."""
    server = RedisServer(tmp_path_factory.mktemp("r"), free_port() if request.param == "tcp" else 0)
    server.start()
    monkeypatch.setenv("REDIS_URL", address(server))
    client = functools.cache(connect.sync_client.__wrapped__)
    monkeypatch.setattr(connect, "sync_client", client)
    yield server
    client().close()
    server.kill()


def address(server: RedisServer) -> str:
    return f"redis://127.0.0.1:{server.port}" if server.port else f"unix://{server.folder}/redis.sock"


def restart(server: RedisServer) -> None:
    server.kill()
    server.start()


def end_connections(server: RedisServer) -> None:
    """The server goes on and closes all of them."""
    with redis.Redis(unix_socket_path=str(server.folder / "redis.sock")) as other:
        other.execute_command("CLIENT", "KILL", "SKIPME", "YES")


@pytest.mark.parametrize("is_heard", [False, True], ids=["unheard", "heard"])
@pytest.mark.parametrize("fault", [restart, end_connections])
async def test_whatever_is_asked_first_is_answered(
    server: RedisServer, fault: Callable[[RedisServer], None], is_heard: bool
) -> None:
    for ask in WAYS:
        assert await ask() == b"x"
        fault(server)  # the loop hears of nothing meanwhile
        if is_heard:
            await connections_have_ended()
        assert await ask() == b"x", ask.__name__


async def connections_have_ended() -> None:
    """The event loop has heard of it."""
    pool: Any = connect.async_client().connection_pool
    wire = connect._wires.get(asyncio.get_running_loop())
    known = [*pool._available_connections, *([wire.connection] if wire else ())]
    while any(one._reader is not None and not one._reader.at_eof() for one in known):  # noqa: ASYNC110
        await asyncio.sleep(0)


@pytest.mark.parametrize("ask", [command, pipeline, script])
async def test_so_it_is_after_a_reset(ask: Callable[[], Awaitable[Any]]) -> None:
    assert await ask() == b"x"
    pool: Any = connect.async_client().connection_pool
    wire = connect._wires.get(asyncio.get_running_loop())
    for one in [*pool._available_connections, *([wire.connection] if wire else ())]:
        one._reader.set_exception(ConnectionResetError())  # what the loop tells of a reset
        one._writer.transport.abort()
    assert await ask() == b"x"


async def test_a_channel_is_opened_after_a_restart_though_nobody_has_listened_for_long(
    redis_server: RedisServer,
) -> None:
    layer: Any = get_channel_layer()
    first = asyncio.create_task(layer.receive(await layer.new_channel()))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    (shard,) = layer._get_layer()._shards
    while shard._pubsub.subscribed:  # noqa: ASYNC110 - until then its connection is read
        await asyncio.sleep(0.01)
    restart(redis_server)
    channel = await layer.new_channel()
    await layer.group_add("group", channel)
    heard = asyncio.create_task(layer.receive(channel))
    await layer.group_send("group", {"type": "said"})
    assert await heard == {"type": "said"}
