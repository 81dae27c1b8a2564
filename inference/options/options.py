"""What an operator has chosen, and how it comes to the processes that `manage.py` starts."""

from __future__ import annotations

import ipaddress
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from .errors import OptionError
from .sources import chosen
from .values import CACHE_TYPES

DEFAULT_DATA_DIR = Path(__file__).resolve().parent.parent.parent / "var"


@dataclass(frozen=True, slots=True)
class Options:
    """What an operator can choose. Paths are absolute."""

    model: str = ""  # "": the default model
    alias: str = ""  # "": the model file's name
    host: str = "127.0.0.1"
    port: int = 8000
    data_dir: Path = DEFAULT_DATA_DIR
    ctx_size: int = 0  # cells of the pool; 0: what the model was trained for
    parallel: int = 4  # slots
    batch_size: int = 2048  # tokens
    ubatch_size: int = 512  # tokens
    threads: int = 0  # 0: all cores
    gpu_layers: int = -1  # -1: all
    flash_attn: str = "auto"  # "auto", "on" or "off"
    n_predict: int = -1  # tokens; -1: no limit of its own
    api_keys: tuple[str, ...] = ()
    temp: float = 0.8
    seed: int = -1  # -1: a random one for each request
    slots: bool = True
    metrics: bool = False
    sse_ping_interval: float = 2.0  # seconds; -1: no comments but those of a park
    preempt_ram: int = 8192  # MiB; -1: no limit
    cache_prompt: bool = True
    cache_ram: int = 2048  # MiB, at most half of what is free; -1: no limit
    rotate_after: float = 2.0  # seconds; 0: never
    preempt_every: int = 0  # tokens; 0: never
    context_shift: bool = False
    keep: int = 0  # tokens; -1: the prompt
    cache_type_k: str = "f16"
    cache_type_v: str = "f16"
    exact: bool = False
    allow_anonymous: bool = False
    sign_up: bool = False
    drain: float = 2.0  # seconds
    send_timeout: float = 60.0  # seconds; 0: never
    max_followers: int = 100
    max_body: int = 16  # MiB of a request's body
    max_choices: int = 128  # of one request: its prompts times `n`
    max_output: int = -1  # tokens of an answer; -1: up to the context
    max_log: int = 2**20  # tokens of an event log, which bounds an answer that a context shift lets go on
    max_queue: int = 10_000  # generations that may wait for a slot; -1: no limit, as for the next three
    max_per_key: int = 1000  # generations at once of an API key
    max_per_user: int = 1000  # of a person, those of their keys included
    max_per_address: int = 1000  # of one address, without a key
    log_lifetime: int = 86_400  # seconds, from a log's first event and again from its last
    tls_proxy: bool = False
    chat_titles: bool = True

    @property
    def longest(self) -> int:
        """Tokens of an answer, at most, where the context has room for so many."""
        return self.max_log if self.max_output == -1 else min(self.max_output, self.max_log)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server: a proxy lets others in."""
        if self.tls_proxy:
            return False
        host = self.host.strip("[]")
        try:
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "data_dir": str(self.data_dir)})

    @classmethod
    def from_json(cls, raw: str) -> Options:
        data = json.loads(raw)
        return cls(**{**data, "data_dir": Path(data["data_dir"]), "api_keys": tuple(data["api_keys"])})

    @classmethod
    def from_env(cls) -> Options:
        """The options that `manage.py` parsed, or else those of the environment's variables.

        Raises OptionError.
        """
        if raw := os.environ.get("BERTH_OPTIONS"):
            return cls.from_json(raw)
        return cls(**chosen({}, os.environ)).checked()

    def checked(self) -> Options:
        """These, with a micro-batch that is never bigger than the batch.

        Raises OptionError for two that exclude each other.
        """
        if self.exact and self.flash_attn == "on":
            raise OptionError("--exact does without flash attention; leave --flash-attn on away")
        if CACHE_TYPES[self.cache_type_v] < 16 and (self.exact or self.flash_attn == "off"):
            without = "--exact" if self.exact else "--flash-attn off"
            raise OptionError(
                f"--cache-type-v {self.cache_type_v} needs flash attention, which {without} does without; "
                "leave one of the two away"
            )
        return replace(self, ubatch_size=min(self.ubatch_size or self.batch_size, self.batch_size))
