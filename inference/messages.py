"""Every message between Berth's processes, in one place: plain data, importing nothing of the rest.

A web process turns a request body into a `GenerationRequest` and submits it inside a `Job`. The worker
answers with `Event`s. The n-th event of a generation has sequence number n, counted from 1; the event
log and the group message carry the same number, so that a reader can see a gap.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

JobKind = Literal["generate", "tokenize", "detokenize", "apply_template"]
Prompt = str | tuple[int | str, ...]  # text, token ids, or a mix of both
RANDOM_SEED = 2**32 - 1  # llama.cpp's own mark for "choose one"
MOST_SIBLINGS = 256  # as many as two hex digits tell apart

# As in vLLM, the lower number goes first.
HIGHEST, HIGH, NORMAL, LOW, LOWEST = -100, -1, 0, 1, 100
PRIORITIES = {"high": HIGH, "normal": NORMAL, "low": LOW}


def priority_name(priority: int) -> str:
    """The word for a priority; its number when it has none."""
    return next((name for name, number in PRIORITIES.items() if number == priority), str(priority))


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is chosen; names and meanings are llama-server's."""

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    typical_p: float = 1.0
    repeat_penalty: float = 1.0
    repeat_last_n: int = 64
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = -1  # -1: a random one
    logit_bias: tuple[tuple[int | str, float], ...] = ()  # a string biases each of its tokens
    ignore_eos: bool = False

    def for_choice(self, k: int) -> SamplingParams:
        """Those of a request's choice k: a seed that is given differs, yet is known."""
        return self if self.seed < 0 or k == 0 else replace(self, seed=(self.seed + k) % RANDOM_SEED)


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """What to generate. Exactly one of `prompt`, `prompts` and `messages` is given.

    `prompts` are several, each a request of its own; `messages` goes through the model's chat template.
    Of each there are `n` choices: siblings, which are generations of their own in one job.
    """

    prompt: Prompt | None = None
    prompts: tuple[Prompt, ...] = ()
    messages: tuple[dict[str, Any], ...] | None = None
    n: int = 1
    sampling: SamplingParams = field(default_factory=SamplingParams)
    max_tokens: int = -1  # -1: until the model stops or the context is full
    stop: tuple[str, ...] = ()
    stream: bool = False  # only a streaming request is told of parks
    cache_prompt: bool = True  # what is computed of the prompt may be kept, and used
    priority: int = NORMAL
    n_keep: int = 0  # tokens that a context shift leaves at the start; -1: the prompt
    n_discard: int = 0  # tokens that a context shift forgets; 0: half of the others

    @property
    def n_choices(self) -> int:
        return max(1, len(self.prompts)) * self.n

    def choices(self) -> list[GenerationRequest]:
        """One request for each choice, those of the first prompt first. Choice k of a prompt has seed + k."""
        if self.n_choices == 1:
            return [self]
        return [
            replace(self, prompt=prompt, prompts=(), n=1, sampling=self.sampling.for_choice(k))
            for prompt in self.prompts or (self.prompt,)
            for k in range(self.n)
        ]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> GenerationRequest:
        prompt, messages, sampling = data["prompt"], data["messages"], dict(data["sampling"])
        sampling["logit_bias"] = tuple((token, bias) for token, bias in sampling["logit_bias"])
        return cls(
            prompt=_prompt(prompt),
            prompts=tuple(map(_prompt, data["prompts"])),
            n=data["n"],
            messages=None if messages is None else tuple(messages),
            sampling=SamplingParams(**sampling),
            max_tokens=data["max_tokens"],
            stop=tuple(data["stop"]),
            stream=data["stream"],
            cache_prompt=data.get("cache_prompt", True),
            n_keep=data.get("n_keep", 0),
            n_discard=data.get("n_discard", 0),
            priority=data["priority"],
        )


def _prompt(value: Any) -> Any:
    """A prompt that came as JSON."""
    return tuple(value) if isinstance(value, list) else value


def from_json(raw: str | bytes) -> Any:
    """Raises ValueError for what is no JSON."""
    try:
        return json.loads(raw)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def sibling_ids(job_id: str, n: int) -> list[str]:
    """The ids of a job's generations, 32 hex digits each, that differ in the last two at most.

    The first is the job's own: a request for one choice has one id.
    """
    return [job_id, *(f"{int(job_id, 16) ^ i:032x}" for i in range(1, n))]


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work for a worker. `body` is a GenerationRequest as a dict, or {"content": str},
    {"tokens": [int]}, {"messages": [...]} for the other kinds."""

    id: str  # also the id of its first generation
    kind: JobKind
    body: dict[str, Any]
    reply_to: str  # the channel group of the web process that asked; "" when nobody listens
    owner: str = ""  # a name for operators: user or API key, never text
    account: str = ""  # whose it is: what is computed of its prompt is kept for that account alone
    submitted_at: float = 0.0  # seconds since the epoch
    goes_on: bool = False  # its logs hold a part of it, which was cancelled

    def generations(self) -> list[str]:
        """The ids of its generations; its own id where it is no generation."""
        return sibling_ids(self.id, max(1, len(self.body.get("prompts", ()))) * self.body.get("n", 1))

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, raw: str | bytes) -> Job:
        """Raises ValueError for what is no job."""
        found: Job = _read(cls, from_json(raw))
        prompts, n = found.body.get("prompts", ()), found.body.get("n", 1)
        if not re.fullmatch("[0-9a-f]{32}", found.id):
            raise ValueError(f"no id of a job: {found.id!r:.80}")
        if not (isinstance(prompts, list | tuple) and type(n) is int):
            raise ValueError("prompts and n are no list and no number")
        if not 1 <= max(1, len(prompts)) * n <= MOST_SIBLINGS:
            raise ValueError(f"{len(prompts)} prompts times {n} are no number of generations")
        return found


# --- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Accepted:
    """The request passed every check; nothing of it is generated yet."""

    kind: ClassVar[str] = "accepted"
    prompt_tokens: int
    seed: int  # the one that is used
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Started:
    """It has a slot and its prompt is being processed."""

    kind: ClassVar[str] = "started"
    slot: int


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token. `text` can be empty: half a character, or text that may be a stop string."""

    kind: ClassVar[str] = "token"
    token: int
    text: str


@dataclass(frozen=True, slots=True)
class Preempted:
    kind: ClassVar[str] = "preempted"
    slot: int  # -1: it had none yet
    # pressure, admission, rotation, priority, hand, forced, decode: no cells were found, or worker: it died
    cause: str
    cells: int
    bytes: int  # of host RAM taken
    method: str = "swap"  # or "recompute": the cells were dropped and will be computed again


@dataclass(frozen=True, slots=True)
class Resumed:
    kind: ClassVar[str] = "resumed"
    slot: int
    waited: float  # seconds
    method: str = ""  # how its state came back, which can be another way than its park promised


@dataclass(frozen=True, slots=True)
class Released:
    """It was held by hand, and waits for its turn to be resumed."""

    kind: ClassVar[str] = "released"


@dataclass(frozen=True, slots=True)
class Prioritised:
    """An operator has changed what goes first."""

    kind: ClassVar[str] = "prioritised"
    priority: int


@dataclass(frozen=True, slots=True)
class Timings:
    """llama-server's timings, in milliseconds; time parked is in neither figure."""

    cache_n: int = 0
    prompt_n: int = 0
    prompt_ms: float = 0.0
    predicted_n: int = 0
    predicted_ms: float = 0.0

    def to_dict(self) -> dict[str, float]:
        def per_token(ms: float, n: int) -> float:
            return ms / n if n else 0.0

        def per_second(ms: float, n: int) -> float:
            return 1e3 * n / ms if ms else 0.0

        return {
            "cache_n": self.cache_n,
            "prompt_n": self.prompt_n,
            "prompt_ms": self.prompt_ms,
            "prompt_per_token_ms": per_token(self.prompt_ms, self.prompt_n),
            "prompt_per_second": per_second(self.prompt_ms, self.prompt_n),
            "predicted_n": self.predicted_n,
            "predicted_ms": self.predicted_ms,
            "predicted_per_token_ms": per_token(self.predicted_ms, self.predicted_n),
            "predicted_per_second": per_second(self.predicted_ms, self.predicted_n),
        }


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a generation that went well. `text` is what was held back and is now certain."""

    kind: ClassVar[str] = "finished"
    stop_type: Literal["eos", "word", "limit", "cancelled"]
    stopping_word: str
    text: str
    prompt_tokens: int
    completion_tokens: int
    truncated: bool  # the context was full
    slot: int
    timings: Timings
    parks: int
    parked_s: float
    ttft_s: float  # from acceptance by the worker to the first token


@dataclass(frozen=True, slots=True)
class Failed:
    """The last event of a generation that was refused (before Accepted) or broke (after it)."""

    kind: ClassVar[str] = "failed"
    status: int  # the HTTP status it deserves
    type: str  # llama-server's error types: invalid_request_error, exceed_context_size_error, ...
    message: str
    extra: dict[str, Any] = field(default_factory=dict)  # such as n_prompt_tokens and n_ctx


@dataclass(frozen=True, slots=True)
class Answer:
    """The reply to a job that is not a generation."""

    kind: ClassVar[str] = "answer"
    data: dict[str, Any]


Event = Accepted | Started | Token | Preempted | Released | Resumed | Prioritised | Finished | Failed | Answer
TERMINAL = (Finished, Failed, Answer)
_TYPES: dict[str, type[Any]] = {
    c.kind: c
    for c in (
        Accepted,
        Started,
        Token,
        Preempted,
        Released,
        Resumed,
        Prioritised,
        Finished,
        Failed,
        Answer,
    )
}


def encode_event(event: Event) -> list[Any]:
    """An event as a short list that JSON and msgpack can carry."""
    if type(event) is Token:  # the hot one
        return ["token", event.token, event.text]
    return [event.kind, asdict(event)]


def decode_event(data: Any) -> Event:
    """The event in such a list. Raises ValueError for what is none."""
    try:
        kind = data[0]
        if kind == "token":
            _, token, text = data
            if type(token) is int and type(text) is str:
                return Token(token, text)
        elif kind in _TYPES:
            _, values = data
            if kind == "finished":
                values = {**values, "timings": _read(Timings, values["timings"])}
            return _read(_TYPES[kind], values)  # type: ignore[no-any-return]
    except (TypeError, LookupError) as error:
        raise ValueError(f"no event: {error!r}") from error
    raise ValueError(f"no event: {data!r:.80}")


def _read(cls: type[Any], values: Any) -> Any:
    """An instance made of fields that came as JSON. Raises ValueError when they are not its own."""
    if not isinstance(values, dict):
        raise ValueError(f"no {cls.__name__}: {values!r:.80}")
    wanted = _FIELDS.get(cls) or _FIELDS.setdefault(cls, _fields(cls))
    for name, value in values.items():
        if name not in wanted or not isinstance(value, wanted[name]):
            raise ValueError(f"no {name} of a {cls.__name__}: {value!r:.80}")
    try:
        return cls(**values)
    except TypeError as error:  # one is missing
        raise ValueError(str(error)) from error


_FIELDS: dict[type[Any], dict[str, tuple[type, ...]]] = {}


def _fields(cls: type[Any]) -> dict[str, tuple[type, ...]]:
    """The types that each field of a message may have in JSON."""
    found: dict[str, tuple[type, ...]] = {}
    hints = get_type_hints(cls)
    for one in fields(cls):
        hint = hints[one.name]
        if get_origin(hint) is Literal:
            hint = type(get_args(hint)[0])
        hint = get_origin(hint) or hint
        found[one.name] = (float, int) if hint is float else (hint,)
    return found
