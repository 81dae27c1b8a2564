"""What a chaos run does, drawn from its seed: the requests of the clients, and the faults between them.

Pure: the same seed and numbers give the same plan. When exactly a fault hits what is by the wall clock, so
two runs of one plan are alike, not the same.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Endpoint = Literal["/completion", "/v1/completions", "/v1/chat/completions", "page"]
Manner = Literal["stays", "slow", "leaves", "returns", "reloads", "stops"]
Kind = Literal["worker", "term", "stop", "web", "drain", "redis", "deaf", "database"]

KINDS: dict[Kind, int] = {  # kind -> how often, in proportion
    "worker": 4,  # SIGKILL of a worker
    "term": 2,  # SIGTERM of a worker
    "stop": 2,  # SIGSTOP of a worker for longer than its lease, then SIGCONT
    "web": 4,  # SIGKILL of the web process
    "drain": 2,  # SIGTERM of the web process
    "redis": 2,  # SIGKILL of Redis
    "deaf": 3,  # the connections on which group messages come are cut
    "database": 1,  # somebody else holds the database's write lock
}
N_QUESTIONS = 24  # different ones, at most: each is asked once undisturbed, so that its text is known
PAGE_TOKENS = 24  # what an answer in the browser has; the server's own setting
SUBJECTS = (
    "the lighthouse", "a loaf of bread", "the old bridge", "a chess player", "the night train", "winter",
    "a letter without a stamp", "the beekeeper", "two brothers", "the clockmaker", "a wet garden", "the map",
)  # fmt: skip
OPENINGS = (
    "Write a story about {}.",
    "Once upon a time there was {}, and",
    "Explain to a child what is strange about {}.",
    "The last sentence of the book was about {}:",
)


class Question(NamedTuple):
    """What is asked, however the answer is read."""

    endpoint: Endpoint
    prompt: str
    n_tokens: int
    temperature: float
    repeat_penalty: float
    seed: int
    n: int  # choices


class Request(NamedTuple):
    """One client's wish."""

    number: int
    question: Question
    stream: bool
    manner: Manner
    after: int  # texts that it has read when it leaves, returns, reloads, stops, or stops reading for a while
    pause: float  # seconds for which a slow one does not read, or one that returns is away


class Fault(NamedTuple):
    kind: Kind
    after: int  # generations that have begun
    delay: float  # seconds from then
    which: int  # of several workers
    lasts: float  # 0..1, of what the kind may last


@dataclass(frozen=True)
class Plan:
    seed: int
    requests: tuple[Request, ...]
    faults: tuple[Fault, ...]

    @property
    def questions(self) -> list[Question]:
        """Each once."""
        return list(dict.fromkeys(request.question for request in self.requests))


def make(seed: int, generations: int, kinds: Sequence[Kind] = tuple(KINDS), every: float = 5.0) -> Plan:
    """A plan of that many generations, with a fault of one of the kinds for `every` of them."""
    rng = random.Random(seed)
    n_questions = min(N_QUESTIONS, max(4, generations // 30 * 4))  # as many for each endpoint
    questions = [_question(rng, i) for i in range(n_questions)]
    requests = [_request(rng, i, questions[i % n_questions]) for i in range(generations)]
    rng.shuffle(requests)
    numbered = tuple(request._replace(number=i) for i, request in enumerate(requests))
    return Plan(seed, numbered, tuple(_faults(random.Random(seed + 1), generations, kinds, every)))


def _question(rng: random.Random, i: int) -> Question:
    endpoints: tuple[Endpoint, ...] = ("/completion", "/v1/completions", "/v1/chat/completions", "page")
    endpoint = endpoints[i % len(endpoints)]
    subject = rng.choice(SUBJECTS)
    opening = rng.choice(OPENINGS).format(subject)
    # The number makes questions differ; the repetition makes prompts of up to about 80 tokens.
    prompt = f"{i}. {' '.join([f'It is about {subject}.'] * rng.choice((0, 0, 4, 10)))} {opening}"
    sampled = rng.random() < 0.5
    return Question(
        endpoint,
        prompt,
        PAGE_TOKENS if endpoint == "page" else rng.randint(10, 30),
        round(rng.uniform(0.4, 1.2), 2) if sampled else 0.0,
        1.15 if sampled and rng.random() < 0.5 else 1.0,
        rng.randrange(1, 1 << 31),
        2 if endpoint.startswith("/v1/") and rng.random() < 0.25 else 1,
    )


def _request(rng: random.Random, number: int, question: Question) -> Request:
    manners: list[Manner] = ["stays", "stays", "stays", "stays", "stays", "slow", "leaves", "returns"]
    is_page = question.endpoint == "page"
    if is_page:
        manners += ["reloads", "stops", "leaves"]
    stream = is_page or rng.random() < 0.7
    manner = rng.choice(manners)
    if not stream and manner != "leaves":
        manner = "stays"
    return Request(
        number, question, stream, manner, rng.randint(0, question.n_tokens // 2), rng.uniform(0.1, 4.0)
    )


def _faults(rng: random.Random, generations: int, kinds: Sequence[Kind], every: float) -> list[Fault]:
    if not kinds:
        return []
    weights = [KINDS[kind] for kind in kinds]
    moments = sorted(rng.uniform(1, generations) for _ in range(round(generations / every)))
    return [
        Fault(kind, int(at), rng.uniform(0.0, 1.5), rng.randrange(1000), rng.random())
        for at, kind in zip(moments, rng.choices(kinds, weights, k=len(moments)), strict=True)
    ]
