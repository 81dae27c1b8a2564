"""Chats that arrive over time: the workloads that a policy is judged by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

from .costs import Costs


@dataclass(frozen=True, slots=True)
class Arrival:
    at: float  # s
    prompt: int  # tokens
    answer: int  # tokens
    priority: int = 0


def _short(random: Random) -> tuple[int, int]:
    return random.randint(20, 80), random.randint(20, 120)


def _heavy(random: Random) -> tuple[int, int]:
    """Half are short; one in fifty fills a good part of the pool."""
    return int(random.lognormvariate(4.1, 0.8)) + 4, int(30 * random.paretovariate(1.2))


def _agent(random: Random) -> tuple[int, int]:
    """Two thirds are agents, whose prompts are long and whose answers are not."""
    if random.random() < 1 / 3:
        return _short(random)
    return random.randint(600, 6000), random.randint(30, 250)


SIZES: dict[str, Callable[[Random], tuple[int, int]]] = {
    "short": _short,
    "heavy": _heavy,
    "bursty": _heavy,
    "agents": _agent,
}
CELLS = {"short": 512, "heavy": 2048, "bursty": 2048, "agents": 8192}  # a pool that is scarce for it
BURST = 32  # chats that come at once


def arrivals(
    workload: str,
    n: int,
    *,
    seed: int,
    load: float,
    n_cells: int,
    n_slots: int,
    priorities: bool,
    costs: Costs,
) -> list[Arrival]:
    """`n` chats in the order of arrival.

    `load` is the work that arrives in a second in relation to what all slots can do in it. A chat that would
    not fit an empty pool is cut: a prompt to half the pool, an answer to what is left.
    """
    random = Random(f"{workload} {seed}")
    sizes = []
    for prompt, answer in islice(_forever(SIZES[workload], random), n):
        prompt = min(prompt, n_cells // 2)
        sizes.append((prompt, min(answer, n_cells - prompt)))
    token_s = costs.decode_s(n_slots) / n_slots
    work = sum(prompt * costs.prompt_token_s + answer * token_s for prompt, answer in sizes)
    gap = work / n / load
    at, chats = 0.0, []
    for i, (prompt, answer) in enumerate(sizes):
        if workload != "bursty":
            at += random.expovariate(1 / gap)
        elif i % BURST == 0:
            at += random.expovariate(1 / gap / BURST)
        priority = random.choices((-1, 0, 1), (1, 7, 2))[0] if priorities else 0
        chats.append(Arrival(at, prompt, answer, priority))
    return chats


def _forever(size: Callable[[Random], tuple[int, int]], random: Random) -> Iterator[tuple[int, int]]:
    while True:
        yield size(random)
