"""Runs the model on a step's work, and takes the tokens that it samples."""

from __future__ import annotations

from collections.abc import Callable

from inference.messages import Event, Token

from . import exact
from .context_shift import ContextShift
from .counters import Counters
from .ends import Ends
from .llama import Batch, Context
from .pace import PrefillPace
from .prefix_cache import PrefixCache
from .sequence import Sequence, Work
from .trial import Trial

STEP_TARGET_S = 0.2  # how long a step with a prompt may keep decoding neighbours waiting


class Runner:
    """`preempt_every`: each sequence is due to be parked every so many of its tokens; 0 for never."""

    def __init__(
        self,
        ctx: Context,
        shift: ContextShift,
        ends: Ends,
        prefixes: PrefixCache,
        trial: Trial,
        counters: Counters,
        emit: Callable[[Sequence, Event], None],
        clock: Callable[[], float],
        *,
        n_ctx_seq: int,
        preempt_every: int,
    ) -> None:
        self._ctx, self._shift, self._ends, self._trial = ctx, shift, ends, trial
        self._prefixes = prefixes
        self._counters, self._emit, self._clock = counters, emit, clock
        self._n_ctx_seq = n_ctx_seq
        self._preempt_every = preempt_every
        self._batch = Batch(ctx.n_batch)
        self._pace = PrefillPace(STEP_TARGET_S)

    @property
    def decode_step_s(self) -> float:
        """What a step without a prompt takes."""
        return self._pace.decode_step

    def prefill_tokens(self, n_decoding: int) -> int:
        """The prompt tokens that a step may take beside so many that decode."""
        return max(self._pace.tokens(n_decoding), exact.CHUNK if self._ctx.exact else 0)

    def run(self, work: list[Work]) -> bool:
        """Compute and sample. False when llama.cpp found too few cells for a batch: it changed nothing, and
        what was left of the work is not done."""
        if self._ctx.exact:
            return all(self._decode(batch) for batch in exact.batches(work, self._ctx.together))
        return not work or self._decode(work)

    def stop_type(self, seq: Sequence) -> str:
        """Why its last token was the last one; "" when it was not."""
        if seq.tokens[-1] in self._ctx.model.eog:
            return "eos"
        if seq.text.stopping_word:
            return "word"
        is_full = len(seq.tokens) >= self._n_ctx_seq and not self._shift.on
        return "limit" if is_full or seq.generated == seq.max_tokens else ""

    def _decode(self, work: list[Work]) -> bool:
        batch = self._batch
        batch.clear()
        outputs: list[tuple[Sequence, int]] = []
        prompts: list[Work] = []
        is_full = self._shift.is_due
        for seq, n in work:
            if is_full(seq):
                self._shift.make_room(seq)  # here: nothing comes between it and the decode that it needs
            last = n == seq.pending
            index = batch.add(seq.tokens[seq.cells : seq.cells + n], seq.cells, seq.slot, last)
            if last:
                outputs.append((seq, index))
            if not seq.decoding:
                prompts.append((seq, n))
        started = self._clock()
        if self._ctx.decode(batch) == 1:
            return False
        now = self._clock()
        for seq, n in work:
            seq.cells += n
            if seq.redo:
                self._recomputed(seq, n, now)
        n_prompt = sum(n for _, n in prompts)
        self._pace.observe(now - started, n_prompt, batch.n - n_prompt)
        for seq, n in prompts:
            self._prefixes.save(seq, n, len(work) == 1)
        self._counters.n_decode_total += 1
        self._counters.busy_slots_total += len(work)
        for seq, index in outputs:
            self._start_answer(seq, now)
            if seq.max_tokens == 0:
                self._ends.finish(seq, "limit")
            else:
                self._take_token(seq, seq.sampler.sample(self._ctx, index))
        return True

    def _recomputed(self, seq: Sequence, n: int, now: float) -> None:
        """`n` more cells; those that it had before its park belong to the time it waited."""
        self._counters.recomputed_tokens_total += n - max(0, seq.cells - seq.redo)
        if seq.cells >= seq.redo:
            seq.pause_clock(now)
            seq.redo = 0

    def _start_answer(self, seq: Sequence, now: float) -> None:
        """Close the prompt's account, once."""
        if not seq.first_token_at:
            seq.pause_clock(now)
            seq.first_token_at = now
            self._counters.prompt_tokens_total += seq.n_prompt - seq.cached
            self._counters.prompt_seconds_total += seq.prompt_s
            self._counters.first_token_seconds.observe(now - seq.arrived_at)

    def _take_token(self, seq: Sequence, token: int) -> None:
        if self._trial.is_on:
            self._trial.discard(seq.id)
        seq.tokens.append(token)
        self._counters.tokens_predicted_total += 1
        model = self._ctx.model
        text = "" if token in model.eog else seq.text.push(model.piece(token))
        self._emit(seq, Token(token, text))
        if stop_type := self.stop_type(seq):
            self._ends.finish(seq, stop_type)
        elif self._preempt_every and seq.generated % self._preempt_every == 0:
            seq.park_due = True
