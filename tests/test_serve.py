"""`manage.py serve` as a person runs it: what it refuses, what it survives, and that nothing outlives it."""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from inference.models import ApiKey
from inference.options import Options
from inference.serve import CannotStart, checks, database, embedded_redis, model_files

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 180.0  # seconds after which a test gives up


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def manage(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT, env={**os.environ, **environ}, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip


class Served:
    """A server of its own port, ready when it is made. `lines` is what it has said so far."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir, self.port = data_dir, free_port()
        self.lines: list[str] = []
        flags = [
            "--port",
            str(self.port),
            "--data-dir",
            str(data_dir),
            "--ctx-size",
            "256",
            "--parallel",
            "1",
        ]
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", *flags],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        self._unread = ""
        self.read_until("Try it")

    def read_until(self, text: str) -> None:
        """Read what it says until a line has that text. AssertionError when it ends before."""
        assert self.process.stdout is not None
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
            chunk = os.read(self.process.stdout.fileno(), 1 << 16).decode() if ready else ""
            assert chunk, f"no '{text}' in what serve said:\n" + "\n".join(self.lines)
            *lines, self._unread = (self._unread + chunk).split("\n")
            self.lines += lines
            if any(text in line for line in lines):
                return

    def children(self) -> dict[str, int]:
        """The children by name, with their process ids."""
        found = {}
        for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            with contextlib.suppress(OSError):  # it is gone by now
                command = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                if command[0]:  # it has not ended
                    found["redis" if "valkey-server" in command[0] else command[-2]] = int(pid)
        return found

    def is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=PATIENCE) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    def until(self, condition: Callable[[], bool]) -> None:
        """Ask again and again, as long as it lives and patience lasts."""
        death, give_up = os.pidfd_open(self.process.pid), time.monotonic() + PATIENCE
        try:
            while not condition():
                assert not select.select([death], [], [], 0.05)[0], "serve ended"
                assert time.monotonic() < give_up
        finally:
            os.close(death)

    def end(self, number: int) -> tuple[int, str]:
        """Send a signal and wait for the end: the exit code, and the rest of what it said."""
        self.process.send_signal(number)
        rest, _ = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, rest


class Watch:
    """Processes whose end can be waited for although they are nobody's children any more."""

    def __init__(self, pids: dict[str, int]) -> None:
        assert set(pids) == {"redis", "worker", "web"}
        self._handles = {os.pidfd_open(pid): name for name, pid in pids.items()}

    def alive(self) -> list[str]:
        """Those that are there still after all the time that there is."""
        left = dict(self._handles)
        while left and (ended := select.select(list(left), [], [], PATIENCE)[0]):
            for handle in ended:
                os.close(handle)
                del left[handle]
        return list(left.values())


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


def refused(*flags: str, code: int = 78, **environ: str) -> str:
    """The one line with which serve ends."""
    done = manage("serve", *flags, **environ)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.strip().removeprefix("manage.py serve: ")


# --- refusals: one line, before anything starts -------------------------------------------------------


def test_a_port_in_use_is_refused(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused("--data-dir", str(tmp_path), "--port", str(port))
    assert line == f"port {port} on 127.0.0.1 is in use; stop what uses it, or choose another with --port"


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


def test_a_missing_model_is_refused(tmp_path):
    line = refused("--data-dir", str(tmp_path), "--port", str(free_port()), "--model", "/no.gguf")
    assert line == "there is no model file /no.gguf; give one with --model, or leave --model out"


def test_a_corrupt_model_is_refused(tmp_path):
    with model_files.resolve(Options()).open("rb") as whole:
        (tmp_path / "half.gguf").write_bytes(whole.read(50_000_000))
    flags = ["--data-dir", str(tmp_path), "--port", str(free_port()), "--model", str(tmp_path / "half.gguf")]
    assert (
        refused(*flags) == f"the model {tmp_path / 'half.gguf'} is corrupt (its end is missing); get it again"
    )


def test_memory_is_counted_for_the_cache_types_and_for_each_exact_slot(monkeypatch):
    monkeypatch.setattr(checks, "free_memory", lambda: 1 << 30)
    model = model_files.resolve(Options())
    plain = Options(ctx_size=20_000, gpu_layers=0)
    checks.memory(plain, model)
    with pytest.raises(CannotStart, match="lower --ctx-size to"):
        checks.memory(replace(plain, exact=True), model)
    checks.memory(replace(plain, exact=True, cache_type_k="q4_0", cache_type_v="q4_0"), model)
    with pytest.raises(CannotStart):
        checks.memory(replace(plain, ctx_size=40_000), model)
    checks.memory(replace(plain, ctx_size=40_000, cache_type_k="q8_0", cache_type_v="q8_0"), model)


def test_too_little_memory_is_refused_with_the_size_that_would_fit(tmp_path):
    line = refused(
        "--data-dir", str(tmp_path), "--port", str(free_port()), "--ctx-size", "2000000000", "-ngl", "0"
    )
    assert re.search(r"too little memory: .* MiB are free; lower --ctx-size to \d+ or less$", line)


def test_a_host_that_others_reach_needs_a_key(tmp_path):
    line = refused("--data-dir", str(tmp_path), "--port", str(free_port()), "--host", "0.0.0.0")
    assert line.startswith("0.0.0.0 can be reached by others and no API key exists; give one with --api-key")


def test_an_unknown_flag_is_refused(tmp_path):
    line = refused("--data-dir", str(tmp_path / "new"), "--mdoel", "x", code=2)
    assert line == "unknown flag --mdoel, did you mean --model?"
    assert not (tmp_path / "new").exists()


def test_a_bad_value_is_refused():
    assert refused("--port", "80000", code=2) == "--port: 80000 is too big, the most is 65535"


def test_a_data_directory_that_cannot_be_made_is_refused():
    assert refused("--data-dir", "/proc/berth", code=2).startswith("--data-dir: cannot make /proc/berth: ")


def test_redis_that_does_not_answer_is_refused(tmp_path):
    url = f"redis://127.0.0.1:{free_port()}/0"
    line = refused("--data-dir", str(tmp_path), "--port", str(free_port()), REDIS_URL=url)
    assert line.startswith("Redis does not answer: ")
    assert line.endswith("; check REDIS_URL")


def test_help_lists_the_flags():
    done = manage("serve", "--help")
    assert done.returncode == 0
    assert "--ctx-size" in done.stdout
    assert manage("help", "serve").stdout == done.stdout


def test_django_s_commands_work_with_the_variable_alone(tmp_path):
    done = manage("migrate", "--verbosity", "0", BERTH_DATA_DIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "db.sqlite3").exists()


@pytest.mark.django_db(transaction=True)
def test_a_key_of_the_admin_counts_until_it_is_revoked():
    assert not database.has_api_key()
    row, _ = ApiKey.objects.create_key("a program")
    assert database.has_api_key()
    ApiKey.objects.filter(pk=row.pk).update(revoked_at=row.created_at)
    assert not database.has_api_key()


def test_free_memory_is_known_here():
    assert (checks.free_memory() or 0) > 0


def test_a_deep_data_directory_has_its_socket_elsewhere(tmp_path):
    deep = tmp_path / ("deep" * 30)
    deep.mkdir()
    _, path = embedded_redis.prepare(deep)
    assert len(str(path)) < embedded_redis.LONGEST_SOCKET
    assert (deep / "redis.url").read_text() == f"unix://{path}\n"
    assert path.parent.stat().st_mode & 0o777 == 0o700
    shutil.rmtree(path.parent)


# --- servers that run ---------------------------------------------------------------------------------


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
