from __future__ import annotations

import asyncio

import pytest

from inference.broker.connect import MOST_CONNECTIONS, async_client, redis_url


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("REDIS_URL", raising=False)
    monkeypatch.setenv("BERTH_DATA_DIR", str(tmp_path))
    return tmp_path


def test_the_embedded_server_is_found_in_the_data_directory(folder):
    assert redis_url() == f"unix://{folder.resolve()}/redis.sock"


def test_an_embedded_server_elsewhere_is_found_by_the_address_it_left(folder):
    (folder / "redis.url").write_text("unix:///run/berth.sock\n")
    assert redis_url() == "unix:///run/berth.sock"


def test_a_given_server_comes_first(folder, monkeypatch):
    (folder / "redis.url").write_text("unix:///run/berth.sock\n")
    monkeypatch.setenv("REDIS_URL", "redis://cache:6379/1")
    assert redis_url() == "redis://cache:6379/1"


async def test_more_commands_at_once_than_there_are_connections_wait_for_one():
    client = async_client()
    async with client.client() as one:
        before = len(await one.client_list())
        answers = await asyncio.gather(*(client.echo(f"{n}") for n in range(5 * MOST_CONNECTIONS)))
        assert answers == [b"%d" % n for n in range(5 * MOST_CONNECTIONS)]
        assert len(await one.client_list()) - before <= MOST_CONNECTIONS
