"""The engine: carries out the scheduler's plan, one `step` at a time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from inference.messages import Event, Failed, Finished, Preempted, Resumed, Started, Timings, Token

from . import scheduler
from .llama import Batch, Context
from .pace import PrefillPace
from .sequence import Sequence, State

STEP_TARGET_S = 0.2  # how long a step with a prompt may keep decoding neighbours waiting

Emitted = tuple[str, Event]


@dataclass(slots=True)
class Counters:
    """Totals since the start, under llama-server's names where it has them."""

    prompt_tokens_total: int = 0
    prompt_seconds_total: float = 0.0
    tokens_predicted_total: int = 0
    tokens_predicted_seconds_total: float = 0.0
    n_decode_total: int = 0
    busy_slots_total: int = 0
    n_preempt_total: int = 0
    n_resume_total: int = 0


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
        lone_chunk: int = 128,
        preempt_ram: int = -1,
        preempt_every: int = 0,
        plan_ahead: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.ctx = ctx
        self.n_cells, self.n_slots, self.n_ctx_seq = n_cells, n_slots, n_ctx_seq
        self.lone_chunk, self.preempt_ram = lone_chunk, preempt_ram
        self.preempt_every = preempt_every if preempt_ram else 0
        self.clock = clock
        self.counters = Counters()
        self.residents: list[Sequence] = []
        self.parked: OrderedDict[str, Sequence] = OrderedDict()  # the head first
        self.queued: OrderedDict[str, Sequence] = OrderedDict()
        self.parked_bytes = 0
        self._planned_cells = n_cells if plan_ahead else 1 << 30
        self._plan_cells = self._planned_cells
        self._batch = Batch(ctx.n_batch)
        self._pace = PrefillPace(STEP_TARGET_S)
        self._events: list[Emitted] = []

    # --- from outside ---------------------------------------------------------------------------

    def add(self, seq: Sequence) -> None:
        """Queue a validated sequence: its prompt has 1..n_ctx_seq-1 tokens."""
        seq.arrived_at = self.clock()
        self.queued[seq.id] = seq

    def cancel(self, seq_id: str) -> bool:
        """Free all that a sequence holds, in whatever state it is. False when it is not here."""
        seq = self.queued.get(seq_id) or self.parked.get(seq_id)
        if seq is None:
            seq = next((s for s in self.residents if s.id == seq_id), None)
        if seq is None:
            return False
        self._finish(seq, "cancelled")
        return True

    def hold(self, seq_id: str) -> str:
        """Park a resident until it is released; "" when done, else why not."""
        seq = next((s for s in self.everyone() if s.id == seq_id), None)
        if seq is None:
            return "is over"
        if seq.state is not State.RESIDENT:
            return "is parked already" if seq.state is State.PARKED else "has no slot yet"
        if self.preempt_ram == 0:
            return "cannot be parked: parking is switched off (--preempt-ram 0)"
        self._park(seq, "hand")
        seq.held = True
        return ""

    def release(self, seq_id: str) -> str:
        """Let a held sequence take its turn again; "" when done, else why not."""
        seq = next((s for s in self.everyone() if s.id == seq_id), None)
        if seq is None:
            return "is over"
        if not seq.held:
            return "is not held"
        seq.held = False
        return ""

    @property
    def idle(self) -> bool:
        """Nothing can be done until somebody asks for something: who is held waits for a hand."""
        return not (self.residents or self.queued or any(not s.held for s in self.parked.values()))

    @property
    def used_cells(self) -> int:
        return sum(s.cells for s in self.residents)

    def everyone(self) -> Iterator[Sequence]:
        yield from self.residents
        yield from self.parked.values()
        yield from self.queued.values()

    # --- one step -------------------------------------------------------------------------------

    def step(self) -> list[Emitted]:
        """Plan, park, resume, admit, compute, sample."""
        plan = scheduler.plan(self._pool())
        for seq, cause in plan.park:
            self._park(seq, cause)
        for seq in plan.resume:
            if not self._resume(seq):
                break
        for seq in plan.admit:
            self._admit(seq)
            self._announce_start(seq)
        for seq in plan.park_queued if self.preempt_ram else ():
            self._park_queued(seq)
        self._compute([(s, n) for s, n in plan.compute if s.state is State.RESIDENT])
        return self.drain()

    def drain(self) -> list[Emitted]:
        """What happened since the last `step` or `drain`."""
        events, self._events = self._events, []
        return events

    def _pool(self) -> scheduler.Pool[Sequence]:
        decoding = sum(s.decoding for s in self.residents)
        in_line = [s for s in self.parked.values() if not s.held]
        if not self.residents:
            self._plan_cells = self._planned_cells
        return scheduler.Pool(
            n_cells=self._plan_cells,
            n_slots=self.n_slots,
            residents=self.residents,
            parked=in_line,
            queued=self.queued.values(),
            n_parked=len(in_line),
            step_tokens=self.ctx.n_batch,
            prefill_tokens=self._pace.tokens(decoding),
            lone_chunk=self.lone_chunk,
        )

    def _admit(self, seq: Sequence) -> None:
        del self.queued[seq.id]
        self._occupy(seq)
        seq.active_since = self.clock()

    def _occupy(self, seq: Sequence) -> None:
        """Give it a slot: the one it had if nobody is in it, else the first that is free."""
        if seq.slot < 0 or any(s.slot == seq.slot for s in self.residents):
            seq.slot = self._free_slot()
        seq.state = State.RESIDENT
        self.residents.append(seq)

    def _free_slot(self) -> int:
        """A slot that nobody is in and, if there is one, that no parked sequence will return to."""
        taken = {s.slot for s in self.residents}
        kept = {s.slot for s in self.parked.values()}
        free = [i for i in range(self.n_slots) if i not in taken]
        return next((i for i in free if i not in kept), free[0])

    def _announce_start(self, seq: Sequence) -> None:
        if not seq.started:
            seq.started = True
            self._emit(seq, Started(seq.slot))

    # --- parking --------------------------------------------------------------------------------

    def _park(self, seq: Sequence, cause: str) -> None:
        """Swap it out to host RAM, or, where that does not fit the budget, drop its cells and recompute."""
        if self.preempt_ram == 0:
            self._fail(seq, "the KV cache is full, and parking is switched off (--preempt-ram 0)")
            return
        size = self.ctx.state_size(seq.slot) if seq.cells else 0
        fits = self.preempt_ram < 0 or self.parked_bytes + size <= self.preempt_ram
        cells = seq.cells
        if cells and fits:
            seq.saved = self.ctx.state(seq.slot)
        if cells and seq.saved is None:
            seq.cells = 0
        self.ctx.remove(seq.slot)
        self.residents.remove(seq)
        now = self.clock()
        seq.pause_clock(now)
        self._to_parked(seq, cause, cells, now)

    def _park_queued(self, seq: Sequence) -> None:
        """Its prompt finds no room: it is told so, and waits in line with the parked."""
        del self.queued[seq.id]
        seq.slot = self._free_slot()
        self._to_parked(seq, "admission", 0, self.clock())

    def _to_parked(self, seq: Sequence, cause: str, cells: int, now: float) -> None:
        held = seq.saved.nbytes if seq.saved is not None else 0
        self.parked_bytes += held
        seq.state, seq.cause, seq.parked_at, seq.park_due = State.PARKED, cause, now, False
        seq.parks += 1
        self.counters.n_preempt_total += 1
        self.parked[seq.id] = seq
        method = "swap" if held or not cells else "recompute"
        self._emit(seq, Preempted(seq.slot, cause, cells, held, method))

    def _resume(self, seq: Sequence) -> bool:
        """Bring it back into free cells. False when llama.cpp found none after all: it stays the head."""
        slot = seq.slot
        del self.parked[seq.id]
        self._occupy(seq)
        if seq.saved is not None and not self.ctx.restore(seq.slot, seq.saved):
            self.residents.remove(seq)
            seq.state, seq.slot = State.PARKED, slot
            self.parked[seq.id] = seq
            self.parked.move_to_end(seq.id, last=False)
            return False
        self._drop_saved(seq)
        now = self.clock()
        waited = now - seq.parked_at
        seq.parked_s += waited
        seq.active_since = now
        self.counters.n_resume_total += 1
        self._emit(seq, Resumed(seq.slot, waited))
        self._announce_start(seq)
        return True

    def _drop_saved(self, seq: Sequence) -> None:
        if seq.saved is not None:
            self.parked_bytes -= seq.saved.nbytes
            seq.saved = None

    # --- computing ------------------------------------------------------------------------------

    def _compute(self, work: list[tuple[Sequence, int]]) -> None:
        if not work:
            return
        batch = self._batch
        batch.clear()
        outputs: list[tuple[Sequence, int]] = []
        n_prompt = 0
        for seq, n in work:
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
        if len(self.residents) > 1:
            self._park(scheduler.victim(self.residents), "decode")
        else:
            self._fail(self.residents[0], "the KV cache has no cells left for this request")

    def _start_answer(self, seq: Sequence, now: float) -> None:
        """Close the prompt's account, once."""
        if not seq.first_token_at:
            seq.pause_clock(now)
            seq.first_token_at = now
            self.counters.prompt_tokens_total += seq.n_prompt
            self.counters.prompt_seconds_total += seq.prompt_s

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
        elif seq.generated == seq.max_tokens or len(seq.tokens) >= self.n_ctx_seq:
            self._finish(seq, "limit")
        elif self.preempt_every and seq.generated % self.preempt_every == 0:
            seq.park_due = True

    # --- ends -----------------------------------------------------------------------------------

    def _finish(self, seq: Sequence, stop_type: str) -> None:
        now = self.clock()
        if seq.state is State.RESIDENT:
            seq.pause_clock(now)
        elif seq.state is State.PARKED:
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
                truncated=stop_type == "limit" and not bounded,
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
        if seq.state is State.RESIDENT:
            self.ctx.remove(seq.slot)
            self.residents.remove(seq)
            self._plan_cells = self._planned_cells
        elif seq.state is State.PARKED:
            del self.parked[seq.id]
            self._drop_saved(seq)
        else:
            del self.queued[seq.id]
        seq.state = State.OVER
        seq.sampler.close()

    def _emit(self, seq: Sequence, event: Event) -> None:
        self._events.append((seq.id, event))
