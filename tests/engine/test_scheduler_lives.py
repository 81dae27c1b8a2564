"""Random lives of many chats under the real policy, in the engine in miniature with its virtual clock."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from inference.engine import scheduler
from inference.engine.scheduler import DEFAULT, Plan, Pool, line_key, needs
from inference.simulator.chats import Chat
from inference.simulator.costs import MEASURED
from inference.simulator.machine import Machine

COPIES_S = 0.5  # the small pools of these tests are copied out and in well within it


def turn(machine: Machine) -> float:
    """The longest turn, s."""
    seconds = machine.rotate_after * max(1.0, machine.n_cells / machine.policy.turn_cells)
    return seconds if machine.ram < 0 else seconds * machine.policy.recompute_turns


def longest_gap(machine: Machine, n_spared: int = 0) -> float:
    """The stated bound: seconds in which somebody gets a place, if somebody waits whom nobody outranks.

    The head must be due, the last that came in must have had its turn, or must come to its next token where
    so many are spared, and then copies are made.
    """
    prefill = machine.n_cells * (machine.costs.prompt_token_s + machine.costs.decode_s(machine.n_slots) / 8)
    return max(machine.rotate_after, turn(machine), n_spared * prefill) + COPIES_S


def promised(pool: Pool[Chat], plan: Plan[Chat]) -> None:
    """What a plan promises of cells and slots, before anything of it is carried out."""
    parked = [c for c, _ in plan.park]
    leaving = [*pool.leaving, *parked]
    staying = [c for c in pool.residents if c not in parked]
    newcomers = [*plan.resume, *plan.admit]
    if newcomers:
        assert len(staying) + len(leaving) + len(newcomers) <= pool.n_slots
        free = pool.n_cells - sum(c.cells for c in leaving) - sum(needs(c) for c in staying)
        assert sum(needs(c) for c in newcomers) <= free, "a newcomer has no room"
    coming = sum(c.pending for c in staying if c.moving) + sum(needs(c) for c in plan.resume)
    tokens = sum(n for _, n in plan.compute)
    assert tokens == 0 or tokens + coming + sum(c.cells for c in staying) <= pool.n_cells, (
        "a step without cells"
    )
    assert not {id(c) for c, _ in plan.compute} & {id(c) for c in (*leaving, *plan.resume)}
    assert not any(c.moving for c, _ in plan.compute)


class Lives(RuleBasedStateMachine):
    """Chats arrive, are cancelled, held, released and forced to park; steps fail; and each of them ends."""

    @initialize(
        n_cells=st.integers(64, 700),
        n_slots=st.integers(1, 5),
        rotate_after=st.sampled_from([0.0, 0.5, 2.0]),
        ram=st.sampled_from([-1, -1, 0, 100 * MEASURED.cell_bytes]),
    )
    def start(self, n_cells: int, n_slots: int, rotate_after: float, ram: int) -> None:
        self.machine = Machine(n_cells=n_cells, n_slots=n_slots, rotate_after=rotate_after, ram=ram)
        self.chats: list[Chat] = []
        self.gap_since = 0.0  # since when the head has seen nobody get a place
        self.n_spared = 0  # residents that were spared in their prompt since

    # --- what happens to it ---------------------------------------------------------------------

    @rule(
        prompt=st.floats(0.01, 0.7),
        answer=st.floats(0.01, 1.0),
        priority=st.sampled_from([0, 0, 0, -1, 1, 7]),
    )
    def arrives(self, prompt: float, answer: float, priority: int) -> None:
        n_prompt = max(1, int(prompt * self.machine.n_cells))
        n_answer = max(1, int(answer * (self.machine.n_cells - n_prompt)))
        chat = Chat(len(self.chats), n_prompt, n_answer, priority)
        self.chats.append(chat)
        self.machine.submit(chat)

    @precondition(lambda self: not self.machine.idle)
    @rule(data=st.data())
    def is_cancelled(self, data: st.DataObject) -> None:
        self.machine.cancel(data.draw(st.sampled_from(self.machine.everyone())))

    @precondition(lambda self: not self.machine.idle and self.machine.ram != 0)
    @rule(data=st.data())
    def is_held(self, data: st.DataObject) -> None:
        self.machine.hold(data.draw(st.sampled_from(self.machine.everyone())))

    @precondition(lambda self: any(chat.held for chat in self.machine.everyone()))
    @rule(data=st.data())
    def is_released(self, data: st.DataObject) -> None:
        self.machine.release(data.draw(st.sampled_from([c for c in self.machine.everyone() if c.held])))

    @precondition(lambda self: self.machine.residents)
    @rule(data=st.data())
    def is_forced(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.machine.residents)).park_due = True

    @rule()
    def a_step_finds_no_cells(self) -> None:
        self.machine.no_cells()

    @rule(seconds=st.floats(0.01, 20.0))
    def time_passes(self, seconds: float) -> None:
        until = self.machine.now + seconds
        while self.machine.now < until and not self.machine.idle:
            if not self.step(until):
                break

    def step(self, until: float = math.inf) -> bool:
        """One step, and what must be true of each plan. False when nothing can happen but from outside."""
        machine = self.machine
        pool = machine.pool()
        n_cells = pool.n_cells
        promised(pool, scheduler.plan(pool))
        waiting = [c for c in (*machine.parked, *machine.queued) if not c.held and needs(c) <= n_cells]
        waiting.sort(key=line_key)
        outranked = waiting and any(c.priority < waiting[0].priority for c in machine.residents)
        troubled = outranked or n_cells < machine.n_cells
        before = machine.now
        plan = machine.step(until)
        self.check(plan, waiting)
        if not waiting or plan.resume or plan.admit or troubled:
            self.gap_since, self.n_spared = machine.now, 0
        spared = machine.policy.parks_before_spared
        n_spared = sum(c.parks >= spared and not c.decoding for c in machine.residents)
        self.n_spared = max(self.n_spared, n_spared)
        return machine.now > before or bool(plan.park or plan.resume or plan.admit or plan.park_queued)

    def check(self, plan: Plan[Chat], waiting: list[Chat]) -> None:
        came = sorted([*plan.resume, *plan.admit], key=lambda c: waiting.index(c))
        assert came == waiting[: len(came)], "somebody passed the head"
        assert not any(c.held for c in came), "a held one returned"
        assert all(c.held for c, cause in plan.park if cause == "hand")
        self.conserved()

    # --- what is always true --------------------------------------------------------------------

    @invariant()
    def conserved(self) -> None:
        if not hasattr(self, "machine"):
            return
        machine = self.machine
        held_cells = sum(c.cells for c in (*machine.residents, *machine.leaving))
        coming = sum(c.pending for c in machine.residents if c.moving)
        assert held_cells <= machine.n_cells, "more cells than there are"
        assert held_cells - sum(c.cells for c in machine.leaving) + coming <= machine.n_cells
        assert len(machine.residents) + len(machine.leaving) <= machine.n_slots, "more chats than slots"
        slots = [c.slot for c in (*machine.residents, *machine.leaving)]
        assert len(set(slots)) == len(slots), "two in one slot"
        in_ram = [*machine.parked, *machine.leaving, *(c for c in machine.residents if c.moving)]
        assert machine.ram_used == sum(c.saved for c in in_ram) * MEASURED.cell_bytes
        assert all(c.cells == 0 for c in machine.parked)

    @invariant()
    def nobody_waits_for_ever(self) -> None:
        if hasattr(self, "machine") and self.machine.rotate_after > 0 and self.machine.ram != 0:
            assert self.machine.now - self.gap_since <= longest_gap(self.machine, self.n_spared), (
                "the head starves"
            )

    def teardown(self) -> None:
        """Everybody is released, and everybody comes to an end."""
        if not hasattr(self, "machine"):
            return
        machine = self.machine
        for chat in machine.everyone():
            if chat.held:
                machine.release(chat)
        while not machine.idle:
            assert self.step(), "nothing happens any more"
            self.nobody_waits_for_ever()
        assert all(chat.outcome for chat in self.chats)
        if machine.ram != 0:
            reasons = {chat.outcome for chat in self.chats}
            assert reasons <= {"finished", "cancelled", "the KV cache has no cells left for this request"}
        assert machine.ram_used == 0
        assert [c.tokens for c in self.chats if c.outcome == "finished"] == [
            c.prompt + c.answer for c in self.chats if c.outcome == "finished"
        ]


TestLives = Lives.TestCase
TestLives.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


# --- bounds ---------------------------------------------------------------------------------------


def run(machine: Machine) -> None:
    while not machine.idle:
        machine.step()


@pytest.mark.parametrize(
    ("n_chats", "n_slots", "n_cells"), [(20, 4, 4096), (20, 4, 300), (6, 1, 512), (9, 3, 200)]
)
def test_no_wait_is_longer_than_its_place_in_the_line_times_a_turn(
    n_chats: int, n_slots: int, n_cells: int
) -> None:
    """Chats that would each hold the pool for minutes all get their turn, in the order of the line."""
    machine = Machine(n_cells=n_cells, n_slots=n_slots)
    chats = [Chat(i, 20, n_cells - 20 if n_cells < 4096 else 400) for i in range(n_chats)]
    for chat in chats:
        machine.submit(chat)
    run(machine)
    assert {chat.outcome for chat in chats} == {"finished"}
    assert max(chat.parks for chat in chats) > 0
    assert max(chat.longest_wait for chat in chats) <= machine.rotate_after + n_chats * longest_gap(machine)
    if n_cells == 4096:  # they all fit, so that only slots are scarce: as many places change in a turn
        rounds = math.ceil(n_chats / n_slots)
        assert max(c.longest_wait for c in chats) <= rounds * (machine.rotate_after + COPIES_S)


def test_without_rotation_the_same_chats_wait_for_one_another_to_the_end() -> None:
    def longest(rotate_after: float) -> float:
        machine = Machine(n_cells=4096, n_slots=4, rotate_after=rotate_after)
        chats = [Chat(i, 20, 800) for i in range(20)]
        for chat in chats:
            machine.submit(chat)
        run(machine)
        return max(c.first_token_at for c in chats)

    assert longest(2.0) < longest(0.0) / 8


def test_a_low_priority_gets_its_turn_however_many_higher_ones_keep_coming() -> None:
    machine = Machine(n_cells=512, n_slots=2)
    low = Chat(0, 20, 100, priority=1)
    machine.submit(low)
    n = 1
    while not low.outcome:
        while len(machine.queued) + len(machine.residents) < 6:
            machine.submit(Chat(n, 20, 200))
            n += 1
        machine.step()
    assert low.longest_wait <= 2 * DEFAULT.level_s + 6 * longest_gap(machine)


def test_a_full_ram_does_not_make_the_server_recompute_for_ever() -> None:
    def makespan(ram: int) -> float:
        machine = Machine(n_cells=2048, n_slots=4, ram=ram)
        for i in range(60):
            machine.submit(Chat(i, 400, 200))
        run(machine)
        return machine.now

    assert makespan(1000 * MEASURED.cell_bytes) < 1.25 * makespan(-1)
