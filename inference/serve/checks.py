"""What is found out before anything starts. Each check raises CannotStart with a line that helps."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
from pathlib import Path

import redis

from inference.memory import free as free_memory
from inference.options import CACHE_TYPES, Options

from . import CannotStart, gguf


def data_dir(path: Path) -> None:
    """The data directory exists and can be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise cannot_use(path, error) from None


def cannot_use(path: Path, error: OSError) -> CannotStart:
    """Why a data directory cannot be used, and what to do."""
    return CannotStart(
        f"cannot use the data directory {path}: {error.strerror}; choose another with --data-dir"
    )


def lock(path: Path) -> int:
    """Take the data directory for this process as long as the descriptor that is returned stays open. Raises
    CannotStart."""
    try:
        descriptor = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise cannot_use(path, error) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise CannotStart(
            f"the data directory {path} is used by another server (process {holder}); stop that one, or "
            "choose another with --data-dir"
        ) from None
    with contextlib.suppress(OSError):  # who holds it is only told; a full disk is noticed by who needs it
        os.truncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
    return descriptor


def port(host: str, number: int) -> None:
    """The port can be listened on."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), number, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        raise CannotStart(cannot_listen(host, number, error)) from None


def cannot_listen(host: str, number: int, error: OSError) -> str:
    """Why a port cannot be listened on, and what to do."""
    if error.errno == errno.EADDRINUSE:
        return f"port {number} on {host} is in use; stop what uses it, or choose another with --port"
    if error.errno == errno.EACCES:
        return f"port {number} is for root alone; choose one above 1023 with --port"
    return f"cannot listen on {host}, port {number}: {error.strerror or error}; check --host"


def given_redis() -> None:
    """The server of REDIS_URL answers, if there is one."""
    if not (url := os.environ.get("REDIS_URL")):
        return
    try:
        with redis.Redis.from_url(url, socket_timeout=5) as client:
            client.ping()
    except (redis.RedisError, ValueError, OSError) as error:
        raise CannotStart(f"Redis does not answer: {error}; check REDIS_URL") from None


def memory(options: Options, model: Path) -> None:
    """The model, its KV pool and its scratch space fit into what is free. Not where a GPU holds them."""
    shape = gguf.read_shape(model)
    cells = options.ctx_size or shape.n_ctx_train
    bits = (CACHE_TYPES[options.cache_type_k] + CACHE_TYPES[options.cache_type_v]) / 2
    # With --exact each slot has all the cells.
    cell = int(shape.kv_bytes * bits / 16) * (options.parallel if options.exact else 1)
    size, pool = model.stat().st_size, cells * cell
    scratch = options.ubatch_size * shape.n_vocab * 4  # the logits of a micro-batch
    free = free_memory()
    if free is None or size + pool + scratch <= free or (options.gpu_layers and _has_gpu()):
        return
    needed = (size + pool + scratch) >> 20
    if size + scratch > free:
        advice = "give a smaller model with --model"
    else:
        advice = f"lower --ctx-size to {(free - size - scratch) // cell // 256 * 256} or less"
    raise CannotStart(
        f"too little memory: {model.name} with {cells} cells needs {needed} MiB and "
        f"{free >> 20} MiB are free; {advice}"
    )


def _has_gpu() -> bool:
    """Whether this build of llama.cpp can use a GPU. Loads it, so it is asked last."""
    import llama_cpp

    return bool(llama_cpp.llama_supports_gpu_offload())
