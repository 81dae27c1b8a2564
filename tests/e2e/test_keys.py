"""A key's limit and its end, on the real stack."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from .api import KNIGHT, Reply, body, wait_until_idle
from .stack import ROOT, Stack


@pytest.fixture
def key(stack: Stack) -> Iterator[dict[str, str]]:
    """Of a key that may have one generation at once. While it is there, the API is closed to others."""
    command = [sys.executable, "manage.py", "create_api_key", "--name", "e2e", "--max-concurrent", "1"]
    made = subprocess.run(command, cwd=ROOT, env=stack.environ(), check=True, capture_output=True, text=True)
    yield {"Authorization": f"Bearer {made.stdout.strip()}"}
    write(stack, "DELETE FROM inference_apikey")
    wait_until_idle(stack)


def write(stack: Stack, sql: str, *values: object) -> None:
    """As another process would."""
    with sqlite3.connect(stack.data_dir / "db.sqlite3", timeout=60) as database:
        database.execute(sql, values)


def complete(stack: Stack, key: dict[str, str], n: int) -> Reply:
    return Reply(stack.port, "/completion", body("/completion", KNIGHT, n), headers=key)


def test_a_key_has_its_limit_and_its_stream_ends_with_it(stack: Stack, key: dict[str, str]) -> None:
    for _ in range(3):  # who has read the end of one answer may have the next
        with complete(stack, key, 2) as one:
            assert one.read().status == 200
            assert one.objects[-1]["stop"]
    with complete(stack, key, 200) as stream:
        stream.wait_for("data:")
        with complete(stack, key, 2) as second:
            assert (second.status, second.headers["retry-after"]) == (429, "2")
        write(stack, "UPDATE inference_apikey SET revoked_at = ?", datetime.now(UTC).isoformat(" "))
        assert stream.read().objects[-1]["error"]["code"] == 401
    with complete(stack, key, 2) as after:
        assert after.status == 401
