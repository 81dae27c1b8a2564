"""The flags that mean something here, with their variables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from .values import (
    alias,
    boolean,
    cache_type,
    cells,
    flash,
    from_zero,
    host,
    interval,
    key_file,
    keys,
    layers,
    limit,
    parallel,
    path,
    threads,
    whole,
)


class Flag(NamedTuple):
    """One option: its names, its variable, how a value of it is read and what to say of it."""

    field: str
    names: str
    env: str
    read: Callable[[str], Any]
    metavar: str
    help: str

    @property
    def dest(self) -> str:
        """Where argparse leaves it. Keys add up: each way to give them has a place of its own."""
        return self.names.strip("-").replace("-", "_") if self.field == "api_keys" else self.field


FLAGS = (
    Flag("model", "-m --model", "LLAMA_ARG_MODEL", path, "FILE",
         "GGUF file (default: SmolLM2-135M-Instruct, fetched once)"),
    Flag("alias", "-a --alias", "LLAMA_ARG_ALIAS", alias, "NAME",
         "the model's name in the API (default: the file's name)"),
    Flag("host", "--host", "LLAMA_ARG_HOST", host, "ADDRESS", "address to listen on (default: 127.0.0.1)"),
    Flag("port", "--port", "LLAMA_ARG_PORT", whole(1, 65535), "N", "port to listen on (default: 8000)"),
    Flag("data_dir", "--data-dir", "BERTH_DATA_DIR", lambda text: Path(path(text)), "DIR",
         "database, Redis data, models and secrets (default: ./var beside manage.py)"),
    Flag("ctx_size", "-c --ctx-size", "LLAMA_ARG_CTX_SIZE", cells, "N",
         "cells of the KV pool that all chats share (default: 0, as many as the model was trained for)"),
    Flag("parallel", "-np --parallel", "LLAMA_ARG_N_PARALLEL", parallel, "N",
         "slots: chats that are resident at once, at most (default: 4)"),
    Flag("batch_size", "-b --batch-size", "LLAMA_ARG_BATCH", whole(1, 2**31 - 1), "N",
         "tokens of one decode step, at most (default: 2048)"),
    Flag("ubatch_size", "-ub --ubatch-size", "LLAMA_ARG_UBATCH", whole(0, 2**31 - 1), "N",
         "tokens computed at once, at most (default: 512; never more than --batch-size)"),
    Flag("threads", "-t --threads", "LLAMA_ARG_THREADS", threads, "N", "CPU threads (default: all cores)"),
    Flag("gpu_layers", "-ngl --gpu-layers --n-gpu-layers", "LLAMA_ARG_N_GPU_LAYERS", layers, "N",
         "layers on the GPU: a number, 'auto' or 'all' (default: all, where a GPU build is installed)"),
    Flag("flash_attn", "-fa --flash-attn", "LLAMA_ARG_FLASH_ATTN", flash, "on|off|auto",
         "flash attention (default: auto)"),
    Flag("n_predict", "-n --predict --n-predict", "LLAMA_ARG_N_PREDICT", whole(-1, 2**31 - 1), "N",
         "tokens of an answer, where a request does not say (default: -1, no limit)"),
    Flag("api_keys", "--api-key", "LLAMA_API_KEY", keys, "KEY[,KEY]",
         "keys that the API accepts besides those of the admin (others can see a process's flags; "
         "LLAMA_API_KEY and --api-key-file hide them)"),
    Flag("api_keys", "--api-key-file", "LLAMA_ARG_API_KEY_FILE", key_file, "FILE",
         "more keys, one a line; # starts a comment"),
    Flag("temp", "--temp --temperature", "LLAMA_ARG_TEMPERATURE", from_zero("greedy"), "T",
         "temperature, where a request does not say (default: 0.8)"),
    Flag("seed", "-s --seed", "", whole(-1, 2**32 - 1), "N",
         "seed, where a request does not say (default: -1, random)"),
    Flag("slots", "--slots", "LLAMA_ARG_ENDPOINT_SLOTS", boolean, "", "serve GET /slots (default)"),
    Flag("slots", "--no-slots", "", boolean, "", "do not serve GET /slots"),
    Flag("metrics", "--metrics", "LLAMA_ARG_ENDPOINT_METRICS", boolean, "",
         "serve GET /metrics (default: no)"),
    Flag("sse_ping_interval", "--sse-ping-interval", "LLAMA_ARG_SSE_PING_INTERVAL", interval, "SECONDS",
         "the longest silence of a stream before a comment (default: 2; -1: none but those of a park)"),
    Flag("preempt_ram", "--preempt-ram", "LLAMA_ARG_PREEMPT_RAM", whole(-1, 2**31 - 1), "MIB",
         "host RAM for parked chats (default: 8192; -1: no limit)"),
    Flag("cache_ram", "-cram --cache-ram", "LLAMA_ARG_CACHE_RAM", whole(-1, 2**31 - 1), "MIB",
         "host RAM for computed prompts, so that a chat's next turn need not compute them again "
         "(default: 2048; never more than half of what is free at the start; -1: no limit)"),
    Flag("cache_prompt", "--cache-prompt", "LLAMA_ARG_CACHE_PROMPT", boolean, "",
         "keep computed prompts for the next turn (default)"),
    Flag("cache_prompt", "--no-cache-prompt", "", boolean, "", "compute each prompt from its start"),
    Flag("rotate_after", "--rotate-after", "LLAMA_ARG_ROTATE_AFTER", from_zero("never"), "SECONDS",
         "how long the head of those who wait is passed over before it gets a resident's place "
         "(default: 2; 0: for ever)"),
    Flag("context_shift", "--context-shift", "LLAMA_ARG_CONTEXT_SHIFT", boolean, "",
         "a chat whose context is full forgets a part of it and goes on (default: it ends)"),
    Flag("context_shift", "--no-context-shift", "", boolean, "", "a chat ends when its context is full"),
    Flag("keep", "--keep", "", whole(-1, 2**31 - 1), "N",
         "tokens of the prompt that a context shift keeps (default: 0; -1: all)"),
    Flag("cache_type_k", "-ctk --cache-type-k", "LLAMA_ARG_CACHE_TYPE_K", cache_type, "TYPE",
         "type of the keys in the KV cache (default: f16)"),
    Flag("cache_type_v", "-ctv --cache-type-v", "LLAMA_ARG_CACHE_TYPE_V", cache_type, "TYPE",
         "type of the values in the KV cache (default: f16)"),
    Flag("exact", "--exact", "LLAMA_ARG_EXACT", boolean, "",
         "the text does not depend on what else runs (more memory, fewer tokens per second)"),
    Flag("preempt_every", "--preempt-every", "LLAMA_SERVER_PREEMPT_EVERY", whole(0, 2**31 - 1), "N",
         "for tests: park each chat every N of its tokens (default: 0, never)"),
    Flag("drain", "--drain", "BERTH_DRAIN", from_zero("at once"), "SECONDS",
         "how long open streams may go on when the web process is told to end (default: 2)"),
    Flag("send_timeout", "--send-timeout", "BERTH_SEND_TIMEOUT", from_zero("never"), "SECONDS",
         "a client that takes nothing of what waits for it is cut off after so long (default: 60; 0: never)"),
    Flag("max_followers", "--max-followers", "BERTH_MAX_FOLLOWERS", whole(1, 2**31 - 1), "N",
         "readers of one answer in one web process, at most (default: 100)"),
    Flag("allow_anonymous", "--allow-anonymous", "", boolean, "",
         "serve without a key even where others can reach the server"),
    Flag("sign_up", "--sign-up", "BERTH_SIGN_UP", boolean, "",
         "people may make accounts for themselves (default: administrators make them)"),
    Flag("sign_up", "--no-sign-up", "", boolean, "", "only administrators make accounts"),
    Flag("max_body", "--max-body", "LLAMA_ARG_MAX_BODY", whole(1, 1024), "MIB",
         "the largest body of a request (default: 16)"),
    Flag("max_choices", "--max-choices", "LLAMA_ARG_MAX_CHOICES", whole(1, 128), "N",
         "prompts times n of one request, at most (default: 128)"),
    Flag("max_output", "--max-output", "LLAMA_ARG_MAX_OUTPUT", limit, "N",
         "tokens of an answer, at most, whatever a request says (default: -1, up to the context)"),
    Flag("max_log", "--max-log", "LLAMA_ARG_MAX_LOG", whole(1, 2**31 - 1), "N",
         "tokens of a generation's log in Redis, at most: an answer ends there, also with --context-shift "
         "(default: 1048576)"),
    Flag("max_queue", "--max-queue", "LLAMA_ARG_MAX_QUEUE", whole(-1, 2**31 - 1), "N",
         "generations that may wait for a slot, queued or parked (default: 10000; -1: no limit)"),
    Flag("max_per_key", "--max-per-key", "LLAMA_ARG_MAX_PER_KEY", limit, "N",
         "generations at once of an API key that has no limit of its own (default: 1000; -1: no limit)"),
    Flag("max_per_user", "--max-per-user", "LLAMA_ARG_MAX_PER_USER", limit, "N",
         "generations at once of a person without a limit of their own, in the browser and by all their keys "
         "(default: 1000; -1: no limit)"),
    Flag("max_per_address", "--max-per-address", "LLAMA_ARG_MAX_PER_ADDRESS", limit, "N",
         "generations at once of one address, where no key is needed (default: 1000; -1: no limit)"),
    Flag("log_lifetime", "--log-lifetime", "LLAMA_ARG_LOG_LIFETIME", whole(3600, 2**31 - 1), "SECONDS",
         "how long Redis keeps a generation's events: from the first and again from the last, or until 10 "
         "minutes after the database has the answer (default: 86400)"),
    Flag("tls_proxy", "--tls-proxy", "BERTH_TLS_PROXY", boolean, "",
         "a proxy in front ends TLS and sets X-Forwarded-Proto: pages and cookies go over https alone"),
    Flag("chat_titles", "--chat-titles", "BERTH_CHAT_TITLES", boolean, "",
         "the model makes a title for each new chat, whenever it has nothing else to do (default)"),
    Flag("chat_titles", "--no-chat-titles", "", boolean, "", "a chat is called by its first words"),
)  # fmt: skip
