"""The engine in miniature: it carries out the production scheduler's plans; the clock is pretended."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from inference.engine import scheduler
from inference.engine.line import Line
from inference.engine.scheduler import Plan, Policy, Pool

from . import horizon
from .chats import Chat
from .costs import MEASURED, Costs
from .horizon import LONE_CHUNK

STEP_TOKENS = 2048
COPY_S = 0.01  # of copies between two decode steps, so that no neighbour waits for a whole one


class Stay(NamedTuple):
    """A chat in a slot, for the timeline."""

    chat: Chat
    slot: int
    start: float
    end: float


@dataclass(slots=True)
class Totals:
    parks: dict[str, int] = field(default_factory=dict)  # by cause
    computed: int = 0  # tokens
    recomputed: int = 0  # tokens, of them those that a park had dropped


class Machine:
    """Virtual slots and cells. From outside: `submit`, `cancel`, `hold`, `release`; `step` moves the clock.

    Args:
        ram: bytes of host RAM for parked chats; -1 for no bound, 0 to never park.
    """

    def __init__(
        self,
        *,
        n_cells: int,
        n_slots: int,
        rotate_after: float = 2.0,
        ram: int = -1,
        policy: Policy = scheduler.DEFAULT,
        costs: Costs = MEASURED,
    ) -> None:
        self.n_cells, self.n_slots = n_cells, n_slots
        self.rotate_after, self.ram = rotate_after, ram
        self.policy, self.costs = policy, costs
        self.now = 0.0
        self.residents: list[Chat] = []
        self.leaving: list[Chat] = []
        self.parked: Line[Chat] = Line(self._line_key)
        self.queued: Line[Chat] = Line(self._line_key)
        self.ram_used = 0
        self.totals = Totals()
        self.stays: list[Stay] = []
        self.waiting_over_time: list[tuple[float, int]] = []  # s, chats in line
        self.planned_cells = n_cells  # fewer after a step that found no cells
        self._free_slots = list(range(n_slots))
        self._entered: dict[int, float] = {}  # when the chat in each slot got it

    # --- from outside ---------------------------------------------------------------------------

    def submit(self, chat: Chat) -> None:
        """Queue a chat whose prompt and answer fit the empty pool."""
        chat.arrived = chat.since = self.now
        self.queued.add(chat)

    def cancel(self, chat: Chat) -> None:
        self._end(chat, "cancelled")

    def hold(self, chat: Chat) -> None:
        chat.held = True

    def release(self, chat: Chat) -> None:
        """It waits from now on; a resident that was not parked yet goes on."""
        chat.held = False
        for line in (self.parked, self.queued):
            if chat in line:
                line.pop(chat.id)
                chat.since = self.now
                line.add(chat)

    def everyone(self) -> list[Chat]:
        return [*self.residents, *self.leaving, *self.parked, *self.queued]

    @property
    def idle(self) -> bool:
        return not (self.residents or self.leaving or self.parked or self.queued)

    # --- one step -------------------------------------------------------------------------------

    def pool(self) -> Pool[Chat]:
        if len(self.residents) <= 1:
            self.planned_cells = self.n_cells
        biggest = max((s.cells for s in self.residents), default=0)
        return Pool(
            n_cells=self.planned_cells,
            n_slots=self.n_slots,
            residents=self.residents,
            leaving=self.leaving,
            parked=self.parked,
            queued=self.queued,
            step_tokens=STEP_TOKENS,
            prefill_tokens=self.costs.prefill_tokens(sum(s.decoding for s in self.residents)),
            lone_chunk=LONE_CHUNK,
            now=self.now,
            rotate_after=self.rotate_after,
            can_park=self.ram != 0,
            swaps=self.ram < 0 or self.ram_used + biggest * self.costs.cell_bytes <= self.ram,
            policy=self.policy,
        )

    def step(self, until: float = math.inf) -> Plan[Chat]:
        """Plan and carry it out; as many times as the plan stays the same, but not far beyond `until`."""
        pool = self.pool()
        plan = scheduler.plan(pool)
        for chat, cause in plan.park:
            self._park(chat, cause)
        for chat in plan.resume:
            self.parked.pop(chat.id)
            self._enter(chat)
            chat.moving = chat.saved > 0
        for chat in plan.admit:
            self.queued.pop(chat.id)
            self._enter(chat)
        for chat in plan.park_queued:
            self.queued.pop(chat.id)
            chat.parks += 1
            self.totals.parks["admission"] = self.totals.parks.get("admission", 0) + 1
            self.parked.add(chat)
        changed = plan.park or plan.resume or plan.admit or plan.park_queued
        copies = bool(self.leaving) or any(s.moving for s in self.residents)
        seconds = self._copy(sum(n for _, n in plan.compute)) if copies else 0.0
        if plan.compute:
            times = 1 if changed or copies else horizon.times(pool, plan.compute, self.costs, until)
            seconds += self._compute(plan.compute, times)
        if seconds == 0.0 and not changed and (until := min(until, horizon.next_turn(pool))) < math.inf:
            seconds = max(0.0, until - self.now)  # nobody computes: all that can change the plan is time
        self.now += seconds
        for chat, _ in plan.compute:
            if chat.tokens > chat.prompt and math.isnan(chat.first_token_at):
                chat.first_token_at = self.now
            if chat.tokens == chat.prompt + chat.answer:
                self._end(chat, "finished")
        n_waiting = len(self.parked) + len(self.queued)
        if not self.waiting_over_time or self.waiting_over_time[-1][1] != n_waiting:
            self.waiting_over_time.append((self.now, n_waiting))
        return plan

    def no_cells(self) -> None:
        """A step finds no cells, as llama_decode may say: somebody is parked, the last one is failed."""
        if len(self.residents) > 1:
            self.planned_cells = sum(s.cells for s in (*self.residents, *self.leaving))
            self._park(scheduler.victim(self.residents, self.policy), "decode")
        elif self.residents:
            self._end(self.residents[0], "the KV cache has no cells left for this request")

    # --- places ---------------------------------------------------------------------------------

    def _line_key(self, chat: Chat) -> float:
        return scheduler.line_key(chat, self.policy)

    def _enter(self, chat: Chat) -> None:
        waited = self.now - chat.since
        chat.longest_wait = max(chat.longest_wait, waited)
        chat.resident, chat.since = True, self.now
        chat.slot = self._free_slots.pop(0)
        self._entered[chat.slot] = self.now
        self.residents.append(chat)

    def _free_slot(self, chat: Chat) -> None:
        self.stays.append(Stay(chat, chat.slot, self._entered[chat.slot], self.now))
        self._free_slots.append(chat.slot)
        self._free_slots.sort()

    def _park(self, chat: Chat, cause: str) -> None:
        if self.ram == 0:
            self._end(chat, "the KV cache is full, and parking is switched off")
            return
        self.residents.remove(chat)
        chat.resident = chat.park_due = False
        if chat.moving:  # nobody was told that it is back, and what it had is in RAM still
            chat.moving, chat.cells, chat.since = False, 0, chat.parked_at
            self._left(chat)
            return
        self.totals.parks[cause] = self.totals.parks.get(cause, 0) + 1
        chat.since = chat.parked_at = self.now
        chat.parks += 1
        if self.ram < 0 or self.ram_used + chat.cells * self.costs.cell_bytes <= self.ram:
            self._keep(chat, chat.cells)
            if chat.cells:
                self.leaving.append(chat)
            else:
                self._left(chat)
        else:
            self.totals.recomputed += chat.cells
            chat.cells = 0
            self._left(chat)

    def _left(self, chat: Chat) -> None:
        self._free_slot(chat)
        self.parked.add(chat)

    def _keep(self, chat: Chat, cells: int) -> None:
        """Account for what it has in host RAM."""
        self.ram_used += (cells - chat.saved) * self.costs.cell_bytes
        chat.saved = cells

    def _end(self, chat: Chat, outcome: str) -> None:
        if chat.resident:
            self.residents.remove(chat)
            self._free_slot(chat)
            self.planned_cells = self.n_cells
        elif chat in self.leaving:
            self.leaving.remove(chat)
            self._free_slot(chat)
        elif chat in self.parked:
            self.parked.pop(chat.id)
        else:
            self.queued.pop(chat.id)
        self._keep(chat, 0)
        chat.resident = chat.moving = False
        chat.cells = 0
        chat.outcome, chat.ended_at = outcome, self.now

    # --- the clock ------------------------------------------------------------------------------

    def _copy(self, step_tokens: int) -> float:
        """Copy pieces out, at least what this step's tokens need, then pieces in. Seconds."""
        spoken = sum(s.cells + (s.pending if s.moving else 0) for s in self.residents)
        free = self.n_cells - spoken - sum(s.cells for s in self.leaving)
        wanted = max(step_tokens - free, int(COPY_S / self.costs.out_s))
        seconds = 0.0
        for chat in list(self.leaving):
            n = min(chat.cells, wanted)
            chat.cells -= n
            wanted -= n
            seconds += n * self.costs.out_s
            if chat.cells == 0:
                self.leaving.remove(chat)
                self._left(chat)
        budget = int(max(0.0, COPY_S - seconds) / self.costs.in_s)
        for chat in self.residents:
            if chat.moving:
                n = min(chat.saved - chat.cells, budget)
                chat.cells += n
                budget -= n
                seconds += n * self.costs.in_s
                if chat.cells == chat.saved:
                    chat.moving = False
                    self._keep(chat, 0)
        return seconds

    def _compute(self, work: list[tuple[Chat, int]], times: int) -> float:
        """Carry out the same step so many times. Seconds."""
        n_decoding = 0
        n_prompt = 0
        for chat, n in work:
            if chat.decoding:
                n_decoding += 1
                chat.cells += times
                chat.tokens += times
            else:
                n = min(times * n, chat.tokens - chat.cells)
                n_prompt += n
                chat.cells += n
                if chat.cells == chat.tokens:
                    chat.tokens += 1
        self.totals.computed += n_prompt + n_decoding * times
        return times * self.costs.decode_s(n_decoding) + n_prompt * self.costs.prompt_token_s
