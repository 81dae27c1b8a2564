"""`manage.py serve` as a person runs it: what it survives, and that nothing outlives it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from inference.options import Options
from inference.serve import embedded_redis, model_files

from .served import PATIENCE, ROOT, Served, Watch, free_port, manage, refused


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[[Path], Served]]:
    with ExitStack() as ends:

        def start(data_dir: Path) -> Served:
            served = Served(data_dir)
            ends.callback(served.process.wait)
            ends.callback(served.process.kill)  # the children go with it
            return served

        yield start


@pytest.fixture(scope="module")
def first(start: Callable[[Path], Served], tmp_path_factory: pytest.TempPathFactory) -> Served:
    return start(tmp_path_factory.mktemp("first"))


def test_a_key_can_be_made_in_a_data_directory_before_its_first_start(tmp_path):
    command = [
        sys.executable,
        "manage.py",
        "create_api_key",
        "--name",
        "first",
        "--data-dir",
        str(tmp_path / "new"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("sk-berth-")
    assert (tmp_path / "new" / "db.sqlite3").exists()


def test_help_lists_the_flags():
    done = manage("serve", "--help")
    assert done.returncode == 0
    assert "--ctx-size" in done.stdout
    assert manage("help", "serve").stdout == done.stdout


def test_django_s_commands_work_with_the_variable_alone(tmp_path):
    done = manage("migrate", "--verbosity", "0", BERTH_DATA_DIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "db.sqlite3").exists()


def test_a_deep_data_directory_has_its_socket_elsewhere(tmp_path):
    deep = tmp_path / ("deep" * 30)
    deep.mkdir()
    _, path = embedded_redis.prepare(deep)
    assert len(str(path)) < embedded_redis.LONGEST_SOCKET
    assert (deep / "redis.url").read_text() == f"unix://{path}\n"
    assert path.parent.stat().st_mode & 0o777 == 0o700
    shutil.rmtree(path.parent)


def test_it_ends_its_start_with_addresses_and_a_password(first):
    said = "\n".join(first.lines)
    for path in ("/", "/monitor/", "/admin/", "/v1"):
        assert f"http://127.0.0.1:{first.port}{path}\n" in said
    assert re.search(r"Sign in  admin, password \S{16} \(shown only this once\)\n", said)
    assert f"curl -N http://127.0.0.1:{first.port}/v1/chat/completions" in said


def test_a_data_directory_in_use_is_refused(first):
    line = refused("--data-dir", str(first.data_dir), "--port", str(free_port()))
    assert line.startswith(f"the data directory {first.data_dir} is used by another server (process ")


def test_two_servers_run_side_by_side_and_one_s_end_is_not_the_other_s(first, start, tmp_path):
    second = start(tmp_path)
    assert first.is_healthy()
    assert second.is_healthy()
    watch = Watch(second.children())
    assert second.end(signal.SIGTERM)[0] == 0
    assert watch.alive() == []
    assert first.is_healthy()


@pytest.mark.parametrize("name", ["worker", "web", "redis"])
def test_a_child_that_is_killed_is_started_again(first, name):
    killed = first.children()[name]
    os.kill(killed, signal.SIGKILL)
    first.read_until(f"[serve] {name} was killed by SIGKILL; it is started again in")
    first.until(lambda: first.children().get(name, killed) != killed and first.is_healthy())


def test_a_worker_built_for_another_cpu_ends_it_with_what_to_do(start, tmp_path):
    served = start(tmp_path)
    os.kill(served.children()["worker"], signal.SIGILL)
    served.read_until("llama.cpp was built for another")
    assert served.process.wait(PATIENCE) != 0


def test_sigterm_leaves_no_process_and_the_next_start_shows_no_password(first, start):
    watch = Watch(first.children())
    assert first.end(signal.SIGTERM)[0] == 0
    assert watch.alive() == []
    again = start(first.data_dir)
    assert not any("password " in line and "shown only" in line for line in again.lines)
    assert again.end(signal.SIGINT)[0] == 0


def test_sigkill_leaves_no_orphan(start, tmp_path):
    served = start(tmp_path)
    watch = Watch(served.children())
    served.process.kill()
    assert watch.alive() == []


def test_a_worker_that_cannot_start_ends_it_with_the_reason(tmp_path):
    model = tmp_path / "cut.gguf"
    shutil.copyfile(model_files.resolve(Options()), model)
    os.truncate(model, model.stat().st_size - 32)
    done = manage("serve", "--data-dir", str(tmp_path), "--port", str(free_port()), "--model", str(model))
    assert done.returncode == 78
    assert done.stderr.startswith(f"manage.py serve: cannot load the model {model}: ")
    assert done.stderr.count("\n") == 1
