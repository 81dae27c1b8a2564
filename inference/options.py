"""llama-server's flags and environment variables, read into a frozen `Options`. Standard library only."""

from __future__ import annotations

import argparse
import difflib
import ipaddress
import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from .ignored_flags import NO_VALUE, ONE_VALUE, OPTIONAL_VALUE, TWO_VALUES

VERSION = "0.1.0"
CACHE_TYPES = {  # of the KV cache, and the bits that a value takes
    "f32": 32.0, "f16": 16.0, "bf16": 16.0, "q8_0": 8.5, "q5_1": 6.0, "q5_0": 5.5, "q4_1": 5.0, "q4_0": 4.5,
    "iq4_nl": 4.5,
}  # fmt: skip
DEFAULT_DATA_DIR = Path(__file__).resolve().parent.parent / "var"


class OptionError(ValueError):
    """A flag or variable that cannot be used; the message is one line for the person who gave it."""


class HelpWanted(Exception):
    """`--help` or `--version` was given; the message is the text to print."""


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
    max_per_user: int = 1000  # of a person, those of his keys included
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
        """The options that `manage.py` parsed, or else those of the environment's variables."""
        if raw := os.environ.get("BERTH_OPTIONS"):
            return cls.from_json(raw)
        return _build({}, os.environ)


# --- what a value may be: text -> value, or ArgumentTypeError ---------------------------------------


def _whole(low: int, high: int | None = None) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number") from None
        if value < low:
            raise argparse.ArgumentTypeError(f"{value} is too small, the least is {low}")
        if high is not None and value > high:
            raise argparse.ArgumentTypeError(f"{value} is too big, the most is {high}")
        return value

    return read


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number") from None
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"'{text}' is not a finite number")
    return value


def _from_zero(zero_means: str) -> Callable[[str], float]:
    def read(text: str) -> float:
        value = _number(text)
        if value < 0:
            raise argparse.ArgumentTypeError(f"{text} is negative; 0 means {zero_means}")
        return value

    return read


def _interval(text: str) -> float:
    value = _number(text)
    if value <= 0 and value != -1:
        raise argparse.ArgumentTypeError(f"{text} is neither seconds above 0 nor -1 (off)")
    return value


def _limit(text: str) -> int:
    value = _whole(-1, 2**31 - 1)(text)
    if value == 0:
        raise argparse.ArgumentTypeError("0 would let nobody in; give 1 or more, or -1 for no limit")
    return value


def _cache_type(text: str) -> str:
    if text not in CACHE_TYPES:
        raise argparse.ArgumentTypeError(f"'{text}' is none of {', '.join(CACHE_TYPES)}")
    return text


def _parallel(text: str) -> int:
    value = _whole(-1, 255)(text)
    if value == 0:
        raise argparse.ArgumentTypeError("0 slots can serve nobody; give 1 or more")
    return 4 if value == -1 else value


def _threads(text: str) -> int:
    return max(0, _whole(-1, 512)(text))


def _layers(text: str) -> int:
    return -1 if text in ("auto", "all") else _whole(-1)(text)


def _boolean(text: str) -> bool:
    if text.lower() in ("on", "enabled", "true", "1"):
        return True
    if text.lower() in ("off", "disabled", "false", "0"):
        return False
    raise argparse.ArgumentTypeError(f"'{text}' is neither on nor off")


def _flash(text: str) -> str:
    if text.lower() in ("auto", "-1"):
        return "auto"
    return "on" if _boolean(text) else "off"


def _host(text: str) -> str:
    if not text or "," in text or "/" in text or text.endswith(".sock") or " " in text:
        raise argparse.ArgumentTypeError(f"'{text}' is not one address or host name to listen on")
    return text


def _path(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    return os.path.abspath(os.path.expanduser(text))


def _alias(text: str) -> str:
    return text.split(",")[0].strip()


def _keys(text: str) -> tuple[str, ...]:
    keys = tuple(key for part in text.split(",") if (key := part.strip()))
    if not keys:
        raise argparse.ArgumentTypeError("the key is empty")
    return keys


def _key_file(text: str) -> tuple[str, ...]:
    try:
        lines = Path(_path(text)).read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise argparse.ArgumentTypeError(f"cannot read '{text}': {reason}") from None
    keys = tuple(key for line in lines if (key := line.strip()) and not key.startswith("#"))
    if not keys:
        raise argparse.ArgumentTypeError(f"'{text}' holds no key")
    return keys


# --- the flags --------------------------------------------------------------------------------------


class Flag(NamedTuple):
    """One option: its names, its variable, how a value of it is read and what to say of it."""

    field: str
    names: str
    env: str
    read: Callable[[str], Any]
    metavar: str
    help: str


FLAGS = (
    Flag("model", "-m --model", "LLAMA_ARG_MODEL", _path, "FILE",
         "GGUF file (default: SmolLM2-135M-Instruct, fetched once)"),
    Flag("alias", "-a --alias", "LLAMA_ARG_ALIAS", _alias, "NAME",
         "the model's name in the API (default: the file's name)"),
    Flag("host", "--host", "LLAMA_ARG_HOST", _host, "ADDRESS", "address to listen on (default: 127.0.0.1)"),
    Flag("port", "--port", "LLAMA_ARG_PORT", _whole(1, 65535), "N", "port to listen on (default: 8000)"),
    Flag("data_dir", "--data-dir", "BERTH_DATA_DIR", lambda text: Path(_path(text)), "DIR",
         "database, Redis data, models and secrets (default: ./var beside manage.py)"),
    Flag("ctx_size", "-c --ctx-size", "LLAMA_ARG_CTX_SIZE", _whole(0, 2**31 - 1), "N",
         "cells of the KV pool that all chats share (default: 0, as many as the model was trained for)"),
    Flag("parallel", "-np --parallel", "LLAMA_ARG_N_PARALLEL", _parallel, "N",
         "slots: chats that are resident at once, at most (default: 4)"),
    Flag("batch_size", "-b --batch-size", "LLAMA_ARG_BATCH", _whole(1, 2**31 - 1), "N",
         "tokens of one decode step, at most (default: 2048)"),
    Flag("ubatch_size", "-ub --ubatch-size", "LLAMA_ARG_UBATCH", _whole(0, 2**31 - 1), "N",
         "tokens computed at once, at most (default: 512; never more than --batch-size)"),
    Flag("threads", "-t --threads", "LLAMA_ARG_THREADS", _threads, "N", "CPU threads (default: all cores)"),
    Flag("gpu_layers", "-ngl --gpu-layers --n-gpu-layers", "LLAMA_ARG_N_GPU_LAYERS", _layers, "N",
         "layers on the GPU: a number, 'auto' or 'all' (default: all, where a GPU build is installed)"),
    Flag("flash_attn", "-fa --flash-attn", "LLAMA_ARG_FLASH_ATTN", _flash, "on|off|auto",
         "flash attention (default: auto)"),
    Flag("n_predict", "-n --predict --n-predict", "LLAMA_ARG_N_PREDICT", _whole(-1, 2**31 - 1), "N",
         "tokens of an answer, where a request does not say (default: -1, no limit)"),
    Flag("api_keys", "--api-key", "LLAMA_API_KEY", _keys, "KEY[,KEY]",
         "keys that the API accepts besides those of the admin (others can see a process's flags; "
         "LLAMA_API_KEY and --api-key-file hide them)"),
    Flag("api_keys", "--api-key-file", "LLAMA_ARG_API_KEY_FILE", _key_file, "FILE",
         "more keys, one a line; # starts a comment"),
    Flag("temp", "--temp --temperature", "LLAMA_ARG_TEMPERATURE", _from_zero("greedy"), "T",
         "temperature, where a request does not say (default: 0.8)"),
    Flag("seed", "-s --seed", "", _whole(-1, 2**32 - 1), "N",
         "seed, where a request does not say (default: -1, random)"),
    Flag("slots", "--slots", "LLAMA_ARG_ENDPOINT_SLOTS", _boolean, "", "serve GET /slots (default)"),
    Flag("slots", "--no-slots", "", _boolean, "", "do not serve GET /slots"),
    Flag("metrics", "--metrics", "LLAMA_ARG_ENDPOINT_METRICS", _boolean, "",
         "serve GET /metrics (default: no)"),
    Flag("sse_ping_interval", "--sse-ping-interval", "LLAMA_ARG_SSE_PING_INTERVAL", _interval, "SECONDS",
         "the longest silence of a stream before a comment (default: 2; -1: none but those of a park)"),
    Flag("preempt_ram", "--preempt-ram", "LLAMA_ARG_PREEMPT_RAM", _whole(-1, 2**31 - 1), "MIB",
         "host RAM for parked chats (default: 8192; -1: no limit)"),
    Flag("rotate_after", "--rotate-after", "LLAMA_ARG_ROTATE_AFTER", _from_zero("never"), "SECONDS",
         "how long the head of those who wait is passed over before it gets a resident's place "
         "(default: 2; 0: for ever)"),
    Flag("context_shift", "--context-shift", "LLAMA_ARG_CONTEXT_SHIFT", _boolean, "",
         "a chat whose context is full forgets a part of it and goes on (default: it ends)"),
    Flag("context_shift", "--no-context-shift", "", _boolean, "", "a chat ends when its context is full"),
    Flag("keep", "--keep", "", _whole(-1, 2**31 - 1), "N",
         "tokens of the prompt that a context shift keeps (default: 0; -1: all)"),
    Flag("cache_type_k", "-ctk --cache-type-k", "LLAMA_ARG_CACHE_TYPE_K", _cache_type, "TYPE",
         "type of the keys in the KV cache (default: f16)"),
    Flag("cache_type_v", "-ctv --cache-type-v", "LLAMA_ARG_CACHE_TYPE_V", _cache_type, "TYPE",
         "type of the values in the KV cache (default: f16)"),
    Flag("exact", "--exact", "LLAMA_ARG_EXACT", _boolean, "",
         "the text does not depend on what else runs (more memory, fewer tokens per second)"),
    Flag("preempt_every", "--preempt-every", "LLAMA_SERVER_PREEMPT_EVERY", _whole(0, 2**31 - 1), "N",
         "for tests: park each chat every N of its tokens (default: 0, never)"),
    Flag("drain", "--drain", "BERTH_DRAIN", _from_zero("at once"), "SECONDS",
         "how long open streams may go on when the web process is told to end (default: 2)"),
    Flag("send_timeout", "--send-timeout", "BERTH_SEND_TIMEOUT", _from_zero("never"), "SECONDS",
         "a client that takes nothing of what waits for it is cut off after so long (default: 60; 0: never)"),
    Flag("max_followers", "--max-followers", "BERTH_MAX_FOLLOWERS", _whole(1, 2**31 - 1), "N",
         "readers of one answer in one web process, at most (default: 100)"),
    Flag("allow_anonymous", "--allow-anonymous", "", _boolean, "",
         "serve without a key even where others can reach the server"),
    Flag("sign_up", "--sign-up", "BERTH_SIGN_UP", _boolean, "",
         "people may make accounts for themselves (default: administrators make them)"),
    Flag("sign_up", "--no-sign-up", "", _boolean, "", "only administrators make accounts"),
    Flag("max_body", "--max-body", "LLAMA_ARG_MAX_BODY", _whole(1, 1024), "MIB",
         "the largest body of a request (default: 16)"),
    Flag("max_choices", "--max-choices", "LLAMA_ARG_MAX_CHOICES", _whole(1, 128), "N",
         "prompts times n of one request, at most (default: 128)"),
    Flag("max_output", "--max-output", "LLAMA_ARG_MAX_OUTPUT", _limit, "N",
         "tokens of an answer, at most, whatever a request says (default: -1, up to the context)"),
    Flag("max_log", "--max-log", "LLAMA_ARG_MAX_LOG", _whole(1, 2**31 - 1), "N",
         "tokens of a generation's log in Redis, at most: an answer ends there, also with --context-shift "
         "(default: 1048576)"),
    Flag("max_queue", "--max-queue", "LLAMA_ARG_MAX_QUEUE", _whole(-1, 2**31 - 1), "N",
         "generations that may wait for a slot, queued or parked (default: 10000; -1: no limit)"),
    Flag("max_per_key", "--max-per-key", "LLAMA_ARG_MAX_PER_KEY", _limit, "N",
         "generations at once of an API key that has no limit of its own (default: 1000; -1: no limit)"),
    Flag("max_per_user", "--max-per-user", "LLAMA_ARG_MAX_PER_USER", _limit, "N",
         "generations at once of a person who has no limit of his own, in the browser and by all his keys "
         "(default: 1000; -1: no limit)"),
    Flag("max_per_address", "--max-per-address", "LLAMA_ARG_MAX_PER_ADDRESS", _limit, "N",
         "generations at once of one address, where no key is needed (default: 1000; -1: no limit)"),
    Flag("log_lifetime", "--log-lifetime", "LLAMA_ARG_LOG_LIFETIME", _whole(3600, 2**31 - 1), "SECONDS",
         "how long Redis keeps a generation's events: from the first and again from the last, or until 10 "
         "minutes after the database has the answer (default: 86400)"),
    Flag("tls_proxy", "--tls-proxy", "BERTH_TLS_PROXY", _boolean, "",
         "a proxy in front ends TLS and sets X-Forwarded-Proto: pages and cookies go over https alone"),
    Flag("chat_titles", "--chat-titles", "BERTH_CHAT_TITLES", _boolean, "",
         "the model makes a title for each new chat, whenever it has nothing else to do (default)"),
    Flag("chat_titles", "--no-chat-titles", "", _boolean, "", "a chat is called by its first words"),
)  # fmt: skip


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise OptionError(message.removeprefix("argument "))


class _Ignore(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        ignored: list[str] = namespace.__dict__.setdefault("ignored", [])
        if option_string and option_string not in ignored:
            ignored.append(option_string)


class _Tell(argparse.Action):
    """Raises HelpWanted with `const`, or with the parser's help."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        raise HelpWanted(self.const or parser.format_help())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add every flag. What is not given leaves no attribute behind, so that a variable can speak."""
    for flag in FLAGS:
        about = f"{flag.help} [{flag.env}]" if flag.env else flag.help
        common: dict[str, Any] = {"dest": flag.field, "help": about, "default": argparse.SUPPRESS}
        if flag.read is _boolean:
            common |= {"action": "store_false" if "--no-" in flag.names else "store_true"}
        elif flag.field == "api_keys":
            common |= {"action": "extend", "type": flag.read, "metavar": flag.metavar, "nargs": 1}
            common["dest"] = flag.names.strip("-").replace("-", "_")
        else:
            common |= {"type": flag.read, "metavar": flag.metavar}
        if flag.field == "flash_attn":
            common |= {"nargs": "?", "const": "on"}
        parser.add_argument(*flag.names.split(), **common)
    for names, nargs in ((NO_VALUE, 0), (ONE_VALUE, None), (OPTIONAL_VALUE, "?"), (TWO_VALUES, 2)):
        for name in names.split():
            parser.add_argument(
                name, action=_Ignore, nargs=nargs, dest="ignored", default=argparse.SUPPRESS,
                help=argparse.SUPPRESS,
            )  # fmt: skip


def parser(command: str, description: str = "") -> argparse.ArgumentParser:
    """The parser of one of `manage.py`'s commands. It raises OptionError and HelpWanted, and never exits."""
    made = _Parser(
        prog=f"manage.py {command}",
        usage=f"manage.py {command} [options]",
        description=description,
        epilog="A flag beats its variable, which stands in brackets. llama-server's other flags are accepted "
        "and ignored, with a line that says so.",
        allow_abbrev=False,
        add_help=False,
    )
    add_arguments(made)
    made.add_argument("-h", "--help", "--usage", action=_Tell, nargs=0, help="show this and exit")
    made.add_argument(
        "--version", action=_Tell, nargs=0, const=f"Berth {VERSION}\n", help="show the version and exit"
    )
    return made


def parse(
    argv: Sequence[str],
    environ: Mapping[str, str],
    command: str = "serve",
    description: str = "",
    names: list[str] | None = None,
) -> Options:
    """The options that a command line and an environment ask for. `names` takes what is not a flag.

    Flags and variables that mean nothing here are each named in one line on stderr. Raises OptionError
    for an unknown flag or a bad value, HelpWanted for `--help` and `--version`.
    """
    made = parser(command, description)
    known = made._option_string_actions
    for argument in argv:
        name = argument.split("=")[0]
        if name.startswith("-") and name not in known and not re.fullmatch(r"-\d+|-\d*\.\d+", name):
            near = difflib.get_close_matches(name, known, 1, 0.75)
            hint = f", did you mean {near[0]}?" if near else f"; manage.py {command} --help lists the flags"
            raise OptionError(f"unknown flag {name}{hint}")
    space, rest = made.parse_known_args(list(argv))
    if names is not None:
        names += rest
    elif rest:
        raise OptionError(f"unexpected argument '{rest[0]}'; manage.py {command} --help lists the flags")
    given = vars(space)
    options = _build(given, environ)
    variables = {flag.env for flag in FLAGS} | {"LLAMA_ARG_NO_ENDPOINT_SLOTS"}
    unknown = sorted(name for name in environ if name.startswith("LLAMA_ARG_") and name not in variables)
    for name in (*given.get("ignored", ()), *unknown):
        print(f"{name} has no meaning here and is ignored", file=sys.stderr, flush=True)
    return options


def _build(given: Mapping[str, Any], environ: Mapping[str, str]) -> Options:
    """Join what flags gave with variables and defaults. Raises OptionError."""
    values: dict[str, Any] = {
        f.name: f.default for f in fields(Options) if f.default is not MISSING and f.name != "api_keys"
    }
    keys: list[str] = []
    for flag in FLAGS:
        dest = flag.names.strip("-").replace("-", "_") if flag.field == "api_keys" else flag.field
        if dest in given:
            value = given[dest]
        elif flag.env and (text := environ.get(flag.env)):
            value = _from_variable(flag, text)
        elif flag.env == "LLAMA_ARG_ENDPOINT_SLOTS" and "LLAMA_ARG_NO_ENDPOINT_SLOTS" in environ:
            value = False
        else:
            continue
        if flag.field == "api_keys":
            keys += (key for part in ([value] if dest not in given else value) for key in part)
        else:
            values[flag.field] = value
    batch, ubatch = values["batch_size"], values["ubatch_size"]
    values["ubatch_size"] = min(ubatch or batch, batch)
    if values["exact"] and values["flash_attn"] == "on":
        raise OptionError("--exact does without flash attention; leave --flash-attn on away")
    if CACHE_TYPES[values["cache_type_v"]] < 16 and (values["exact"] or values["flash_attn"] == "off"):
        without = "--exact" if values["exact"] else "--flash-attn off"
        raise OptionError(
            f"--cache-type-v {values['cache_type_v']} needs flash attention, which {without} does without; "
            "leave one of the two away"
        )
    return Options(**values, api_keys=tuple(dict.fromkeys(keys)))


def _from_variable(flag: Flag, text: str) -> Any:
    try:
        return flag.read(text)
    except argparse.ArgumentTypeError as error:
        raise OptionError(f"{flag.env}: {error}") from None
