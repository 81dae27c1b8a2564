"""Started in odd surroundings: streams that are closed, a terminal of few characters, few open files."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from inference.engine.llama import Model

from .served import ROOT


def run(code: str, redirect: str = "", **environ: str) -> subprocess.CompletedProcess[bytes]:
    """A Python of its own, started by a shell, that has everything of `surroundings`."""
    code = f"from inference.serve.surroundings import *; {code}"
    return subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {redirect}', sys.executable, code],
        cwd=ROOT, env={**os.environ, **environ}, capture_output=True, timeout=60,
    )  # fmt: skip


def test_what_is_printed_where_nobody_listens_gets_into_no_file(tmp_path):
    kept = tmp_path / "kept"
    code = f"open_standard_streams(); f = open('{kept}', 'w'); print('lost'); print('lost', file=sys.stderr)"
    done = run(f"{code}; f.write('kept')", redirect="<&- >&- 2>&-")
    assert (done.returncode, kept.read_text()) == (0, "kept")


def test_a_terminal_that_lacks_a_character_shows_an_escape():
    done = run("open_standard_streams(); print('a\\u2026')", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (0, b"a\\u2026\n")


def test_as_many_files_may_be_open_as_the_user_may_have():
    code = "allow_many_files(); print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    done = run(f"resource.setrlimit(resource.RLIMIT_NOFILE, (99, {most})); {code}")
    assert done.stdout.decode().split() == [str(most)] * 2


def test_a_model_s_path_can_be_bytes_that_are_no_text(tmp_path: Path, model: Model):
    path = tmp_path / os.fsdecode(b"m\xff.gguf")
    path.symlink_to(model.path)
    assert Model(str(path)).n_vocab == model.n_vocab
