"""One simulation: a workload's chats go through a machine; what came of it as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

from inference.engine.scheduler import DEFAULT, Policy

from .chats import Chat, Reserved
from .costs import MEASURED, Costs
from .machine import Machine
from .workload import arrivals


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is simulated."""

    workload: str = "heavy"
    chats: int = 10_000
    cells: int = 2048
    slots: int = 4
    load: float = 0.9
    priorities: bool = False
    rotate_after: float = 2.0  # s
    ram: int = -1  # bytes; -1: no bound
    parking: bool = True  # False: a chat takes the cells of its whole answer when it is admitted
    policy: Policy = DEFAULT
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Result:
    scenario: Scenario
    machine: Machine
    chats: list[Chat]
    makespan: float  # s
    unparked: float  # s: the same chats and slots with a pool that fits all

    @property
    def waits(self) -> list[float]:
        """The longest stay in line of each chat, s, ascending."""
        return sorted(chat.longest_wait for chat in self.chats)

    @property
    def first_tokens(self) -> list[float]:
        """From arrival to the first token, s, ascending."""
        times = [chat.first_token_at - chat.arrived for chat in self.chats]
        return sorted(t for t in times if not math.isnan(t)) or [math.nan]

    @property
    def failed(self) -> int:
        return sum(chat.outcome != "finished" for chat in self.chats)

    @property
    def parks_per_chat(self) -> float:
        return sum(self.machine.totals.parks.values()) / len(self.chats)

    @property
    def recomputed_share(self) -> float:
        return self.machine.totals.recomputed / max(1, self.machine.totals.computed)


def percentile(ascending: list[float], share: float) -> float:
    return ascending[min(len(ascending) - 1, int(share * len(ascending)))]


def run(scenario: Scenario, costs: Costs = MEASURED) -> Result:
    """Simulate until every chat has ended."""
    machine, chats = _simulate(scenario, costs)
    # What only makes parks cheaper or rarer is left out of it, so that one run serves many scenarios.
    fits_all = replace(scenario, rotate_after=0.0, ram=-1, parking=True, policy=DEFAULT)
    return Result(scenario, machine, chats, machine.now, _unparked(fits_all, costs))


@cache
def _unparked(scenario: Scenario, costs: Costs) -> float:
    """The makespan, s, with as many cells as all slots together can need."""
    machine, _ = _simulate(scenario, costs, scenario.cells * scenario.slots * 2)
    return machine.now


def _simulate(scenario: Scenario, costs: Costs, n_cells: int = 0) -> tuple[Machine, list[Chat]]:
    """Run a scenario to its end, in a pool of another size if one is given."""
    coming = arrivals(
        scenario.workload,
        scenario.chats,
        seed=scenario.seed,
        load=scenario.load,
        n_cells=scenario.cells,
        n_slots=scenario.slots,
        priorities=scenario.priorities,
        costs=costs,
    )
    machine = Machine(
        n_cells=n_cells or scenario.cells,
        n_slots=scenario.slots,
        rotate_after=scenario.rotate_after,
        ram=scenario.ram if scenario.parking else 0,
        policy=scenario.policy,
        costs=costs,
    )
    make = Chat if scenario.parking else Reserved
    chats = [make(i, a.prompt, a.answer, a.priority) for i, a in enumerate(coming)]
    for chat, arrival in zip(chats, coming, strict=True):
        while machine.now < arrival.at:
            if machine.idle:
                machine.now = arrival.at
            else:
                machine.step(arrival.at)
        machine.submit(chat)
    while not machine.idle:
        machine.step()
    return machine, chats
