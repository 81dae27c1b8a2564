"""The engine: carries out the scheduler's plan, one `step` at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

from inference.messages import (
    Event,
    Failed,
    Finished,
    Preempted,
    Prioritised,
    Resumed,
    Started,
    Timings,
    Token,
)

from . import scheduler
from .counters import Counters
from .line import Line
from .llama import Batch, Context
from .pace import PrefillPace
from .parking import Parking
from .sequence import Sequence, State

STEP_TARGET_S = 0.2  # how long a step with a prompt may keep decoding neighbours waiting
EXACT_CHUNK = 32  # tokens; where text must not depend on timing, prompts are cut at its multiples
COPY_SHARE = 0.25  # of a decode step: how long copies may keep the residents waiting before it

Emitted = tuple[str, Event]
Work = tuple[Sequence, int]  # and how many of its tokens


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
        rotate_after: seconds after which the head of those who wait gets the place of a resident; 0: never.
        context_shift: a sequence whose context is full forgets a part of it and goes on.
        lone_chunk: tokens that a step takes of a prompt when nobody else is resident.
        preempt_every: park each sequence every so many of its tokens (a test knob); 0 for never.
        plan_ahead: count cells before a step. Off, only llama_decode itself finds out (a test knob).
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
        rotate_after: float = 0.0,
        context_shift: bool = False,
        lone_chunk: int = 128,
        preempt_every: int = 0,
        plan_ahead: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ctx = ctx
        self.n_cells, self.n_slots, self.n_ctx_seq = n_cells, n_slots, n_ctx_seq
        self.can_park = preempt_ram != 0
        self.rotate_after = rotate_after
        self.context_shift = context_shift and ctx.can_shift
        self.lone_chunk = lone_chunk
        self.preempt_every = preempt_every if self.can_park else 0
        self.clock = clock
        self.counters = Counters()
        self.residents: list[Sequence] = []  # and those who are returning
        self.leaving: list[Sequence] = []
        self.parked: Line[Sequence] = Line(scheduler.line_key)
        self.queued: Line[Sequence] = Line(scheduler.line_key)
        self._parking = Parking(ctx, preempt_ram)
        self._planned_cells = n_cells if plan_ahead else 1 << 30
        self._plan_cells = self._planned_cells
        self._batch = Batch(ctx.n_batch)
        self._pace = PrefillPace(STEP_TARGET_S)
        self._events: list[Emitted] = []

    # --- from outside ---------------------------------------------------------------------------

    def add(self, seq: Sequence) -> None:
        """Queue a validated sequence: its prompt has 1..n_ctx_seq-1 tokens."""
        seq.arrived_at = seq.since = self.clock()
        self.queued.add(seq)

    def cancel(self, seq_id: str) -> bool:
        """Free all that a sequence holds, in whatever state it is. False when it is not here."""
        seq = self.find(seq_id)
        if seq is None:
            return False
        self._finish(seq, "cancelled")
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
        self._park(seq, "hand")
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
        waiting = self.queued.get(seq_id) or self.parked.get(seq_id)
        return waiting or next((s for s in (*self.residents, *self.leaving) if s.id == seq_id), None)

    @property
    def head(self) -> scheduler.Head[Sequence] | None:
        """Whose turn is next, and what it waits for."""
        return scheduler.head(self._pool())

    @property
    def idle(self) -> bool:
        """There is nothing to do until somebody comes, or a held sequence is released."""
        return not (self.residents or self.leaving or self.queued) and all(s.held for s in self.parked)

    @property
    def used_cells(self) -> int:
        return sum(s.cells for s in self.residents) + sum(s.cells for s in self.leaving)

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
        return sum(s.copy.charged for s in self.residents if s.copy is not None and not s.moving)

    @property
    def copied_bytes(self) -> tuple[int, int]:
        """Bytes copied so far from the KV cache to host RAM, and back."""
        return self._parking.bytes_out, self._parking.bytes_in

    def everyone(self) -> Iterator[Sequence]:
        yield from self.residents
        yield from self.leaving
        yield from self.parked
        yield from self.queued

    # --- one step -------------------------------------------------------------------------------

    def step(self) -> list[Emitted]:
        """Plan, park, resume, admit, copy, compute, sample."""
        plan = scheduler.plan(self._pool())
        for seq, cause in plan.park:
            self._park(seq, cause)
        for seq in plan.resume:
            self._resume(seq)
        for seq in plan.admit:
            self._admit(seq)
        for seq in plan.park_queued:
            self._park_queued(seq)
        work = [(s, n) for s, n in plan.compute if s.state is State.RESIDENT]
        if self.leaving or any(s.moving for s in self.residents):
            self._copy(sum(n for _, n in work))
        self._compute(work)
        return self.drain()

    def drain(self) -> list[Emitted]:
        """What happened since the last `step` or `drain`."""
        events, self._events = self._events, []
        return events

    def _pool(self) -> scheduler.Pool[Sequence]:
        decoding = sum(s.decoding for s in self.residents)
        if len(self.residents) <= 1:
            self._plan_cells = self._planned_cells
        return scheduler.Pool(
            n_cells=self._plan_cells,
            n_slots=self.n_slots,
            residents=self.residents,
            leaving=self.leaving,
            parked=self.parked,
            queued=self.queued,
            step_tokens=self.ctx.n_batch,
            prefill_tokens=max(self._pace.tokens(decoding), EXACT_CHUNK if self.ctx.exact else 0),
            lone_chunk=self.lone_chunk,
            now=self.clock(),
            rotate_after=self.rotate_after,
            can_park=self.can_park,
            swaps=self._parking.has_room(self.residents),
        )

    def _admit(self, seq: Sequence) -> None:
        self.queued.pop(seq.id)
        self._occupy(seq, State.RESIDENT)
        seq.active_since = seq.since
        self._announce_start(seq)

    def _occupy(self, seq: Sequence, state: State) -> None:
        """Give it a slot: the one it had if nobody is in it, else the first that is free."""
        taken = self._taken_slots()
        if seq.slot < 0 or seq.slot in taken:
            seq.slot = self._free_slot(taken)
        seq.state, seq.since = state, self.clock()
        self.residents.append(seq)

    def _taken_slots(self) -> set[int]:
        return {s.slot for s in self.residents} | {s.slot for s in self.leaving}

    def _free_slot(self, taken: set[int]) -> int:
        """A slot that nobody is in and, if there is one, that no parked sequence will return to."""
        kept = {s.slot for s in self.parked}
        free = [i for i in range(self.n_slots) if i not in taken]
        return next((i for i in free if i not in kept), free[0])

    def _announce_start(self, seq: Sequence) -> None:
        if not seq.started:
            seq.started = True
            self._emit(seq, Started(seq.slot))

    # --- parking --------------------------------------------------------------------------------

    def _park(self, seq: Sequence, cause: str) -> None:
        """Begin to swap it out to host RAM or, where it does not fit the budget, drop its cells."""
        if not self.can_park:
            self._fail(seq, "the KV cache is full, and parking is switched off (--preempt-ram 0)")
            return
        self.residents.remove(seq)
        if seq.moving:  # nobody was told that it is back, and its copy is whole
            self._leave(seq, seq.parked_at)
            return
        now = self.clock()
        seq.pause_clock(now)
        cells = seq.cells
        if cells and self._parking.reserve(seq, self.residents):
            seq.method, seq.swapped = "swap", cells
        else:
            self._drop_cells(seq)
        self._tell_parked(seq, cause, cells, now)
        self._leave(seq, now)

    def _park_queued(self, seq: Sequence) -> None:
        """Its prompt finds no room: it is told so, and waits in line with the parked."""
        if not self.can_park:
            return
        self.queued.pop(seq.id)
        seq.slot = self._free_slot(self._taken_slots())
        seq.method = "recompute"
        self._tell_parked(seq, "admission", 0, self.clock())
        self._leave(seq, seq.since)

    def _drop_cells(self, seq: Sequence) -> None:
        """It is parked by recompute: what it had will be computed again."""
        self.ctx.remove(seq.slot)
        self._parking.drop(seq)
        redo = max(seq.redo, seq.swapped, seq.cells)
        seq.cells = seq.swapped = 0
        if self._is_full(seq):
            self._shift(seq)
        seq.method, seq.redo = "recompute", min(redo, len(seq.tokens) - 1)

    def _tell_parked(self, seq: Sequence, cause: str, cells: int, now: float) -> None:
        seq.cause, seq.parked_at, seq.park_due, seq.copy_s = cause, now, False, 0.0
        seq.parks += 1
        self.counters.n_preempt_total += 1
        self.counters.parks[cause, seq.method] += 1
        held = seq.copy.charged if seq.copy is not None else 0
        self._emit(seq, Preempted(seq.slot, cause, cells, held, seq.method))

    def _leave(self, seq: Sequence, since: float) -> None:
        seq.state, seq.since = State.LEAVING, since
        self.leaving.append(seq)
        if not seq.cells:
            self._leave_slot(seq)

    def _leave_slot(self, seq: Sequence) -> None:
        """Its last cell is released."""
        self.leaving.remove(seq)
        seq.state = State.PARKED
        self.parked.add(seq)
        if seq.method == "swap":
            self.counters.copy_out_seconds.observe(seq.copy_s)

    def _resume(self, seq: Sequence) -> None:
        """Give it a slot, into which its state comes back."""
        self.parked.pop(seq.id)
        seq.copy_s = 0.0
        if seq.swapped:
            self._occupy(seq, State.RETURNING)
        else:
            self._occupy(seq, State.RESIDENT)
            self._tell_resumed(seq)

    def _tell_resumed(self, seq: Sequence) -> None:
        now = self.clock()
        waited = now - seq.parked_at
        seq.state, seq.since = State.RESIDENT, now
        seq.parked_s += waited
        seq.active_since = now
        counters = self.counters
        counters.n_resume_total += 1
        counters.resumes[seq.cause, seq.method] += 1
        counters.parked_seconds.observe(waited)
        if seq.swapped:
            counters.copy_in_seconds.observe(seq.copy_s)
            self._parking.keep(seq)
            seq.swapped = 0
        self._emit(seq, Resumed(seq.slot, waited))
        self._announce_start(seq)

    def _copy(self, needed: int) -> None:
        """Bring the transfers on: until the step has its `needed` cells, then for a share of its time.

        When nobody computes, nobody waits for the copies, and they go through.
        """
        until = self.clock() + COPY_SHARE * self._pace.decode_step if needed else math.inf
        while self.leaving:
            self._copy_out(self.leaving[0])
            if self._plan_cells - self.used_cells >= needed and self.clock() >= until:
                return
        for seq in [s for s in self.residents if s.moving]:
            while seq.moving:
                self._copy_back(seq)
                if self.clock() >= until:
                    return

    def _copy_out(self, seq: Sequence) -> None:
        started = self.clock()
        if not self._parking.out(seq):
            self._drop_cells(seq)
        seq.copy_s += self.clock() - started
        if not seq.cells:
            self._leave_slot(seq)

    def _copy_back(self, seq: Sequence) -> None:
        started = self.clock()
        if not self._parking.back(seq):
            if self.used_cells > seq.cells:
                self._park(seq, seq.cause)
            else:  # there is nobody whose cells could be waited for
                self._drop_cells(seq)
                self._tell_resumed(seq)
            return
        seq.copy_s += self.clock() - started
        if seq.cells == seq.swapped:
            self._tell_resumed(seq)

    # --- computing ------------------------------------------------------------------------------

    def _compute(self, work: list[Work]) -> None:
        for batch in self._exact_batches(work) if self.ctx.exact else [work] if work else ():
            self._decode(batch)

    def _exact_batches(self, work: list[Work]) -> Iterator[list[Work]]:
        """The same work in batches in which nothing depends on who else is there.

        Each piece of a prompt is alone and always cut at the same places. What was generated goes through
        one token at a time, even when it is computed again.
        """
        single = [(s, 1) for s, _ in work if s.cells >= s.n_prompt]
        if single:
            yield from [single] if self.ctx.together else [[one] for one in single]
        budget = sum(n for s, n in work if s.cells < s.n_prompt)
        for seq, _ in sorted(work, key=lambda one: one[0].since):
            while seq.cells < seq.n_prompt:
                n = min(EXACT_CHUNK - seq.cells % EXACT_CHUNK, seq.n_prompt - seq.cells)
                if n > budget:
                    return
                budget -= n
                yield [(seq, n)]

    def _decode(self, work: list[Work]) -> None:
        batch = self._batch
        batch.clear()
        outputs: list[tuple[Sequence, int]] = []
        n_prompt = 0
        for seq, n in work:
            if self._is_full(seq):
                self._shift(seq)  # here, so that nothing comes between it and the decode that it needs
            last = n == seq.pending
            index = batch.add(seq.tokens[seq.cells : seq.cells + n], seq.cells, seq.slot, last)
            if last:
                outputs.append((seq, index))
            if not seq.decoding:
                n_prompt += n
        started = self.clock()
        if self.ctx.decode(batch) == 1:
            self._no_cells()
            return
        now = self.clock()
        for seq, n in work:
            seq.cells += n
            if seq.redo:
                self._recomputed(seq, n, now)
        self._pace.observe(now - started, n_prompt, batch.n - n_prompt)
        self.counters.n_decode_total += 1
        self.counters.busy_slots_total += len(work)
        for seq, index in outputs:
            self._start_answer(seq, now)
            if seq.max_tokens == 0:
                self._finish(seq, "limit")
            else:
                self._take_token(seq, seq.sampler.sample(self.ctx, index))

    def _no_cells(self) -> None:
        """llama_decode found no cells; it changed nothing. Park somebody, and the next step tries again.

        Until a resident leaves for good, no more cells are planned with than there turned out to be:
        otherwise the one just parked would come back at once, and fail the step again.
        """
        self._plan_cells = self.used_cells
        if self.leaving:
            self._copy_out(self.leaving[0])
        elif len(self.residents) > 1:
            self._park(scheduler.victim(self.residents), "decode")
        else:
            self._fail(self.residents[0], "the KV cache has no cells left for this request")

    def _recomputed(self, seq: Sequence, n: int, now: float) -> None:
        """`n` more cells; those that it had before its park belong to the time it waited."""
        self.counters.recomputed_tokens_total += n - max(0, seq.cells - seq.redo)
        if seq.cells >= seq.redo:
            seq.pause_clock(now)
            seq.redo = 0

    def _is_full(self, seq: Sequence) -> bool:
        return self.context_shift and len(seq.tokens) >= self.n_ctx_seq

    def _shift(self, seq: Sequence) -> None:
        """Make room in a full context, as llama-server does: forget some of all tokens but the last."""
        keep = seq.n_prompt if seq.n_keep < 0 else seq.n_keep
        keep = min(keep + self.ctx.model.add_bos, self.n_ctx_seq - 4)
        left = len(seq.tokens) - 1 - keep
        discard = min(seq.n_discard or left // 2, left - 1)
        if seq.cells:
            self.ctx.shift(seq.slot, keep, discard)
            seq.cells -= discard
        del seq.tokens[keep : keep + discard]
        seq.shifted += discard
        self._parking.drop(seq)
        self.counters.context_shifts_total += 1

    def _start_answer(self, seq: Sequence, now: float) -> None:
        """Close the prompt's account, once."""
        if not seq.first_token_at:
            seq.pause_clock(now)
            seq.first_token_at = now
            self.counters.prompt_tokens_total += seq.n_prompt
            self.counters.prompt_seconds_total += seq.prompt_s
            self.counters.first_token_seconds.observe(now - seq.arrived_at)

    def _take_token(self, seq: Sequence, token: int) -> None:
        seq.tokens.append(token)
        self.counters.tokens_predicted_total += 1
        model = self.ctx.model
        if token in model.eog:
            self._emit(seq, Token(token, ""))
            self._finish(seq, "eos")
            return
        self._emit(seq, Token(token, seq.text.push(model.piece(token))))
        if seq.text.stopping_word:
            self._finish(seq, "word")
        elif seq.generated == seq.max_tokens or (
            len(seq.tokens) >= self.n_ctx_seq and not self.context_shift
        ):
            self._finish(seq, "limit")
        elif self.preempt_every and seq.generated % self.preempt_every == 0:
            seq.park_due = True

    # --- ends -----------------------------------------------------------------------------------

    def _finish(self, seq: Sequence, stop_type: str) -> None:
        now = self.clock()
        if seq.state is State.RESIDENT:
            seq.pause_clock(now)
        elif seq.state is not State.QUEUED:
            seq.parked_s += now - seq.parked_at
        bounded = seq.max_tokens >= 0 and seq.generated >= seq.max_tokens
        timings = Timings(
            prompt_n=seq.n_prompt,
            prompt_ms=1e3 * seq.prompt_s,
            predicted_n=seq.generated,
            predicted_ms=1e3 * seq.decode_s,
        )
        self.counters.tokens_predicted_seconds_total += seq.decode_s
        self._release(seq)
        self._emit(
            seq,
            Finished(
                stop_type=stop_type,  # type: ignore[arg-type]
                stopping_word=seq.text.stopping_word,
                text=seq.text.flush(),
                prompt_tokens=seq.n_prompt,
                completion_tokens=seq.generated,
                truncated=seq.shifted > 0 or (stop_type == "limit" and not bounded),
                slot=seq.slot,
                timings=timings,
                parks=seq.parks,
                parked_s=seq.parked_s,
                ttft_s=seq.first_token_at - seq.arrived_at if seq.first_token_at else 0.0,
            ),
        )

    def _fail(self, seq: Sequence, message: str) -> None:
        """End one request with the context error; the others live."""
        extra = {"n_prompt_tokens": seq.n_prompt, "n_ctx": self.n_ctx_seq}
        self._release(seq)
        self._emit(seq, Failed(500, "exceed_context_size_error", message, extra))

    def _release(self, seq: Sequence) -> None:
        """Free slot, cells and RAM."""
        if seq.state is State.PARKED:
            self.parked.pop(seq.id)
        elif seq.state is State.QUEUED:
            self.queued.pop(seq.id)
        else:
            self.ctx.remove(seq.slot)
            (self.leaving if seq.state is State.LEAVING else self.residents).remove(seq)
            self._plan_cells = self._planned_cells
        self._parking.drop(seq)
        seq.state = State.OVER
        seq.sampler.close()

    def _emit(self, seq: Sequence, event: Event) -> None:
        self._events.append((seq.id, event))
