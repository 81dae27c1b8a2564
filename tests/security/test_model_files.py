"""A model's file from anywhere: refused in one line, or good. Nothing else."""

from __future__ import annotations

import asyncio
import random
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from inference.serve import CannotStart, child, gguf
from tests.e2e.stack import ROOT, free_port
from tests.live.conftest import hostile_model
from tests.test_fetch_model import write_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return hostile_model(tmp_path_factory).read_bytes()


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def header(*pairs: bytes, tensors: int = 0, pairs_told: int | None = None) -> bytes:
    return struct.pack(
        "<4sIQQ", b"GGUF", 3, tensors, len(pairs) if pairs_told is None else pairs_told
    ) + b"".join(pairs)


def pair(key: str, kind: int, value: bytes) -> bytes:
    return string(key) + struct.pack("<I", kind) + value


TEXT = string("x")  # a value of kind 8


MAX = 2**64 - 1
BROKEN = {
    "nothing": b"",
    "no magic": b"GGML",
    "a version to come": struct.pack("<4sIQQ", b"GGUF", 99, 0, 0),
    "more pairs than bytes": header(pairs_told=MAX),
    "more tensors than bytes": header(tensors=MAX),
    "a key without end": header(struct.pack("<Q", MAX)),
    "a key that is not text": header(struct.pack("<Q", 2) + b"\xff\xfe" + struct.pack("<II", 4, 1)),
    "a value of no type": header(pair("a", 77, b"")),
    "an array without end": header(pair("a", 9, struct.pack("<IQ", 4, MAX))),
    "strings without end": header(pair("a", 9, struct.pack("<IQQ", 8, MAX, MAX))),
    "a string far away": header(pair("a", 9, struct.pack("<IQQ", 8, 2, MAX - 7))),
    "arrays in arrays": header(pair("a", 9, struct.pack("<IQ", 9, 1) * 5000)),
    "an alignment of zero": header(pair("general.alignment", 4, struct.pack("<I", 0))),
    "an alignment of text": header(pair("general.alignment", 8, TEXT)),
    "a vocabulary of text": header(pair("tokenizer.ggml.tokens", 8, TEXT)),
    "a tensor of many dimensions": header(tensors=1) + TEXT + struct.pack("<I", 2**31),
    "layers of text": header(pair(".block_count", 8, TEXT)),
    "a context of a million million": header(pair(".context_length", 10, struct.pack("<Q", 10**12))),
    "a context of half a token": header(pair(".context_length", 6, struct.pack("<f", 0.5))),
}


def is_refused(path: Path, data: bytes) -> bool:
    """Whether the checks refuse it, which is all that they may do."""
    path.write_bytes(data)
    refusal = ""
    try:
        gguf.check(path)
        gguf.read_shape(path)
    except CannotStart as error:
        refusal = str(error)
    assert refusal == "" or (str(path) in refusal and "\n" not in refusal)
    return refusal != ""


@pytest.mark.parametrize("what", BROKEN)
def test_a_header_of_nonsense_is_refused(what: str, tmp_path: Path) -> None:
    assert is_refused(tmp_path / "broken.gguf", BROKEN[what] + bytes(100 if BROKEN[what] else 0))


@pytest.mark.model
def test_a_whole_file_is_good_and_one_that_is_cut_off_is_not(model: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    assert not is_refused(path, model)
    for length in [*range(0, 1000, 7), len(model) // 4, len(model) // 2]:
        assert is_refused(path, model[:length]), length


def test_whatever_a_header_says_it_is_refused_or_taken(tmp_path: Path) -> None:
    dice = random.Random(1)
    path = tmp_path / "broken.gguf"
    good = write_model(path)
    for _ in range(2000):
        data = bytearray(good)
        for _ in range(dice.choice([1, 2, 8, 64])):
            at = dice.randrange(8, len(good))
            data[at : at + 8] = dice.choice([dice.randbytes(8), b"\xff" * 8, bytes(8), dice.randbytes(1)])
        is_refused(path, bytes(data))


def serve(model: Path, data_dir: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", "serve", "--data-dir", str(data_dir), "--port", str(free_port())]
    return subprocess.run(
        [*command, "--ctx-size", "256", "--model", str(model)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


def with_number(model: bytes, key: bytes, value: int) -> bytes:
    """With another value of four bytes after a key and its type."""
    at = model.index(struct.pack("<Q", len(key)) + key) + 8 + len(key) + 4
    return model[:at] + struct.pack("<I", value) + model[at + 4 :]


ODD: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "no context": (lambda m: with_number(m, b"llama.context_length", 0), "its header is damaged"),
    "heads of no size": (lambda m: with_number(m, b"llama.attention.head_count", 7), "invalid n_rot"),
    # llama.cpp ends its process over this one.
    "a token twice": (
        lambda m: m.replace(struct.pack("<Q", 1) + b"Z", struct.pack("<Q", 1) + b"Y", 1),
        "SIGABRT",
    ),
}


@pytest.mark.model
@pytest.mark.parametrize("what", ODD)
def test_what_cannot_be_loaded_is_refused_in_one_line_and_not_tried_again(
    model: bytes, what: str, tmp_path: Path
) -> None:
    change, why = ODD[what]
    path = tmp_path / "odd.gguf"
    path.write_bytes(change(model))
    done = serve(path, tmp_path)
    assert done.returncode == 78, done.stdout + done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert why in done.stderr
    assert "started again" not in done.stdout


def test_a_child_that_crashes_before_it_is_ready_is_not_started_again() -> None:
    async def live(script: str) -> None:
        one = child.Child(
            "worker", [sys.executable, "-c", script], {}, ready="ready: ", crash="the model x is corrupt"
        )
        try:
            await asyncio.wait_for(one.start(), 30)
        finally:
            one.kill()

    crash = f"import os; os.kill(os.getpid(), {int(signal.SIGABRT)})"
    with pytest.raises(CannotStart, match=r"the model x is corrupt \(SIGABRT\)"):
        asyncio.run(live(crash))
