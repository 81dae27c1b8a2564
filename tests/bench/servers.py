"""Start the product and its peer with the same model and the same flags."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.served import ROOT, free_port

MODEL = ROOT / "var/models/SmolLM2-135M-Instruct.Q4_1.gguf"


def wait_healthy(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(1200):
        if process.poll() is not None:
            break
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        time.sleep(0.1)
    raise SystemExit(f"the server on port {port} did not start:\n{log.read_text(errors='replace')[-3000:]}")


@contextlib.contextmanager
def started(command: list[str], port: int) -> Iterator[int]:
    """Run a server until the block ends; yields its port."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [part.replace("{data}", folder) for part in command],
                cwd=ROOT,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            wait_healthy(port, process, log)
            yield port
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def flags(port: int, threads: int) -> list[str]:
    shared = f"--ctx-size 8192 --parallel 8 --threads {threads} --host 127.0.0.1 --port {port}"
    return ["--model", str(MODEL), *shared.split()]


def berth(threads: int) -> contextlib.AbstractContextManager[int]:
    port = free_port()
    command = [sys.executable, "manage.py", "serve", "--data-dir", "{data}"]
    return started([*command, *flags(port, threads)], port)


def peer(binary: str, threads: int) -> contextlib.AbstractContextManager[int]:
    port = free_port()
    return started([binary, *flags(port, threads), "--kv-unified", "--no-webui"], port)
