"""What a client asks for: a generation, and how its tokens are chosen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from .reading import as_dict

Prompt = str | tuple[int | str, ...]  # text, token ids, or a mix of both
RANDOM_SEED = 2**32 - 1  # llama.cpp's own mark for "choose one"

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
        """As JSON can carry it. What its fields hold is not copied."""
        return {**as_dict(self), "sampling": as_dict(self.sampling)}

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
