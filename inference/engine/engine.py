"""The engine: carries out the scheduler's plan, one `step` at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator

from inference.messages import Event, Prioritised

from . import scheduler
from .context_shift import ContextShift
from .counters import Counters
from .ends import Ends
from .llama import Context
from .parking import Parking
from .past import Past, rebuild
from .places import Places
from .prefix_cache import PrefixCache
from .room import Room
from .runner import Runner
from .sequence import Sequence, State
from .transfers import Transfers
from .trial import Trial

COPY_SHARE = 0.25  # of a decode step: how long copies may keep the residents waiting before it

Emitted = tuple[str, Event]
Life = tuple[Sequence, Past]


class Engine:
    """Continuous batching over one pool of KV cells.

    `add` and `cancel` queue work; `step` does one plan and returns what happened as (id, event) pairs.
    All of it must be called from one thread.

    Args:
        ctx: the KV cache; its sequence ids 0..n_slots-1 are the slots.
        n_cells: the pool, at most ctx.n_ctx.
        n_slots: how many sequences may be resident.
        n_ctx_seq: the most tokens that one sequence may have.
        preempt_ram: bytes of host RAM that parked sequences may hold, -1 for no bound, 0 to never park.
        cache_ram: bytes of host RAM for computed prompts, -1 for no bound, 0 for none.
        rotate_after: seconds after which the head of those who wait gets the place of a resident; 0: never.
        context_shift: a sequence whose context is full forgets a part of it and goes on.
        lone_chunk: tokens of a prompt that a step takes when it is alone, a multiple of exact.CHUNK.
        preempt_every: park each sequence every so many of its tokens (a test knob); 0 for never.
        plan_ahead: count cells before a step. Off, only llama_decode itself finds out (a test knob).
        on_trial: called with the id of a sequence that may have ended the worker that had it, before it is
            computed again, alone; and with "" when nothing of the kind is any more.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        ctx: Context,
        *,
        n_cells: int,
        n_slots: int,
        n_ctx_seq: int,
        preempt_ram: int = -1,
        cache_ram: int = 0,
        rotate_after: float = 0.0,
        context_shift: bool = False,
        lone_chunk: int = 128,
        preempt_every: int = 0,
        plan_ahead: bool = True,
        on_trial: Callable[[str], None] = lambda id: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ctx = ctx
        self.n_cells, self.n_slots, self.n_ctx_seq = n_cells, n_slots, n_ctx_seq
        self.can_park = preempt_ram != 0
        self.rotate_after = rotate_after
        self.context_shift = context_shift and ctx.can_shift
        self.lone_chunk = lone_chunk
        self.clock = clock
        self.counters = counters = Counters()
        self._events: list[Emitted] = []
        self._places = places = Places(n_slots)
        self.residents, self.leaving = places.residents, places.leaving
        self.parked, self.queued = places.parked, places.queued
        self._room = room = Room(n_cells if plan_ahead else 1 << 30)
        self._parking = parking = Parking(ctx, preempt_ram)
        self._shift = shift = ContextShift(ctx, parking, counters, n_ctx_seq=n_ctx_seq, on=self.context_shift)
        self._prefixes = PrefixCache(ctx, places, counters, clock, budget=cache_ram, lone_chunk=lone_chunk)
        self._transfers = Transfers(places, parking, shift, counters, self._emit, clock)
        self._trial = trial = Trial(on_trial)
        self._ends = Ends(places, parking, room, trial, counters, self._emit, clock, n_ctx_seq=n_ctx_seq)
        self._runner = Runner(
            ctx, shift, self._ends, self._prefixes, trial, counters, self._emit, clock,
            n_ctx_seq=n_ctx_seq, preempt_every=preempt_every if self.can_park else 0,
        )  # fmt: skip
        # In exact mode decoding neighbours are in batches of their own, and take no room of a prompt's.
        self._step_tokens = ctx.n_batch + (n_slots if ctx.exact else 0)

    # --- from outside ---------------------------------------------------------------------------

    def add(self, seq: Sequence) -> None:
        """Queue a validated sequence: its prompt has 1..n_ctx_seq-1 tokens."""
        seq.arrived_at = seq.since = self.clock()
        self.queued.add(seq)

    def take_over(self, lives: Iterable[Life]) -> None:
        """Go on with sequences of a worker that is gone, or of a client that was, whose `tokens` are their
        prompts.

        Who had a place is parked, and will be computed again. Who may have been computed when it ended is
        tried alone, until it has a token: who had a place, and the first of those who waited for one.
        """
        running: list[Sequence] = []
        waiting: list[Sequence] = []
        for seq, past in lives:
            rebuild(seq, past, self.ctx.model, self._shift, self.clock())
            if not 0 <= seq.slot < self.n_slots:
                seq.slot = -1
            if past.tokens and (stop_type := self._runner.stop_type(seq)):
                self.queued.add(seq)
                self._ends.finish(seq, stop_type)
                continue
            if past.is_queued:
                self.queued.add(seq)
            else:
                self._transfers.take_over(seq, past)
            if past.gone == "worker":
                (waiting if past.is_queued or past.is_parked else running).append(seq)
        waiting.sort(key=scheduler.line_key)
        self._trial.add(s.id for s in (*running, *waiting[: self.n_slots]))

    def cancel(self, seq_id: str) -> bool:
        """Free all that a sequence holds, in whatever state it is. False when it is not here."""
        seq = self.find(seq_id)
        if seq is None:
            return False
        self._ends.finish(seq, "cancelled")
        return True

    def hold(self, seq_id: str) -> str:
        """Park a resident until it is released; "" when that is so, else why not."""
        seq = self.find(seq_id)
        if seq is None:
            return "is over"
        if not self.can_park:
            return "cannot be parked: parking is switched off (--preempt-ram 0)"
        if seq.state is State.QUEUED:
            return "has no slot yet"
        if seq.held or seq.state is not State.RESIDENT:
            return "is parked already"
        seq.held = True
        self._transfers.park(seq, "hand")
        return ""

    def release(self, seq_id: str) -> str:
        """Let a held sequence take its turn again; "" when done, else why not."""
        seq = self.find(seq_id)
        if seq is None:
            return "is over"
        if not seq.held:
            return "is not held"
        seq.held = False
        if seq.state is State.PARKED:  # it waits from now on
            self.parked.pop(seq.id)
            seq.since = self.clock()
            self.parked.add(seq)
        return ""

    def prioritise(self, seq_id: str, priority: int) -> str:
        """Change what goes first; "" when done, else why not. Who waits keeps the time since when it does."""
        seq = self.find(seq_id)
        if seq is None:
            return "is over"
        line = next((line for line in (self.queued, self.parked) if seq in line), None)
        if line is not None:
            line.pop(seq_id)
        seq.priority = priority
        if line is not None:
            line.add(seq)
        self._emit(seq, Prioritised(priority))
        return ""

    def find(self, seq_id: str) -> Sequence | None:
        """The sequence of that id, unless it is over."""
        return self._places.find(seq_id)

    def everyone(self) -> Iterator[Sequence]:
        return self._places.everyone()

    @property
    def head(self) -> scheduler.Head[Sequence] | None:
        """Whose turn is next, and what it waits for."""
        return scheduler.head(self._pool())

    @property
    def line(self) -> Iterator[Sequence]:
        """Who waits, queued or parked, in the order of their turn. Not who is held."""
        return (seq for seq, _ in scheduler.line(self._pool()))

    @property
    def idle(self) -> bool:
        """There is nothing to do until somebody comes, or a held sequence is released."""
        return not (self.residents or self.leaving or self.queued) and all(s.held for s in self.parked)

    @property
    def used_cells(self) -> int:
        return self._places.used_cells

    @property
    def swap(self) -> str:
        """How parks keep a state: `Context.swap`, or "off" where nobody is parked."""
        return self.ctx.swap if self.can_park else "off"

    @property
    def n_transfers(self) -> int:
        """Sequences on their way out to host RAM or back."""
        return len(self.leaving) + sum(s.moving for s in self.residents)

    @property
    def parked_bytes(self) -> int:
        """Host RAM that parked sequences hold, or that is set aside for them."""
        return self._parking.charged - self.kept_bytes

    @property
    def kept_bytes(self) -> int:
        """Host RAM that residents keep of earlier parks; it goes when a park needs it."""
        return self._parking.kept(self.residents)

    @property
    def cached_bytes(self) -> int:
        """Host RAM that computed prompts take."""
        return self._prefixes.nbytes

    @property
    def copied_bytes(self) -> tuple[int, int]:
        """Bytes copied so far from the KV cache to host RAM, and back."""
        return self._parking.bytes_out, self._parking.bytes_in

    # --- one step -------------------------------------------------------------------------------

    def step(self) -> list[Emitted]:
        """Plan, park, resume, admit, copy, compute, sample."""
        plan = scheduler.plan(self._pool())
        for seq, cause in plan.park:
            self._park(seq, cause)
        for seq in plan.resume:
            self._transfers.resume(seq)
        for seq in plan.admit:
            self._admit(seq)
        for seq in plan.park_queued:
            self._transfers.park_queued(seq)
        work = [(s, n) for s, n in plan.compute if s.state is State.RESIDENT]
        if self._trial.is_on:
            work = self._trial.choose(work)
        # When nobody computes, nobody waits for the copies, and they go through.
        seconds = COPY_SHARE * self._runner.decode_step_s if work else math.inf
        if self.leaving or any(s.moving for s in self.residents):
            self._transfers.copy(sum(n for _, n in work), self._room.cells, seconds)
        work = self._prefixes.load(work, self._room.cells, seconds)
        if not self._runner.run(work):
            self._no_cells()
        return self.drain()

    def drain(self) -> list[Emitted]:
        """What happened since the last `step` or `drain`."""
        events, self._events = self._events, []
        return events

    def _pool(self) -> scheduler.Pool[Sequence]:
        decoding = sum(s.decoding for s in self.residents)
        if len(self.residents) <= 1:
            self._room.reset()
        return scheduler.Pool(
            n_cells=self._room.cells,
            n_slots=self.n_slots,
            residents=self.residents,
            leaving=self.leaving,
            parked=self.parked,
            queued=self.queued,
            step_tokens=self._step_tokens,
            prefill_tokens=self._runner.prefill_tokens(decoding),
            lone_chunk=self.lone_chunk,
            now=self.clock(),
            rotate_after=self.rotate_after,
            can_park=self.can_park,
            swaps=self._parking.has_room(self.residents),
        )

    def _admit(self, seq: Sequence) -> None:
        now = self.clock()
        self.queued.pop(seq.id)
        self._places.occupy(seq, State.RESIDENT, now)
        seq.active_since = now
        self._transfers.announce_start(seq)

    def _park(self, seq: Sequence, cause: str) -> None:
        if self.can_park:
            self._transfers.park(seq, cause)
        else:
            self._ends.fail(seq, "the KV cache is full, and parking is switched off (--preempt-ram 0)")

    def _no_cells(self) -> None:
        """llama_decode found no cells; it changed nothing. Park somebody, and the next step tries again.

        Until a resident leaves for good, no more cells are planned with than there turned out to be:
        otherwise the one just parked would come back at once, and fail the step again.
        """
        self._room.found(self.used_cells)
        if self.leaving:
            self._transfers.copy_out(self.leaving[0])
        elif len(self.residents) > 1:
            self._park(scheduler.victim(self.residents), "decode")
        else:
            self._ends.fail(self.residents[0], "the KV cache has no cells left for this request")

    def _emit(self, seq: Sequence, event: Event) -> None:
        self._events.append((seq.id, event))
