"""A full context forgets a part of its tokens, as in llama-server, and the sequence goes on."""

from __future__ import annotations

from .counters import Counters
from .llama import Context
from .parking import Parking
from .sequence import Sequence


class ContextShift:
    """`on`: whether contexts are shifted at all. `n_ctx_seq`: the most tokens that one sequence may have."""

    def __init__(
        self, ctx: Context, parking: Parking, counters: Counters, *, n_ctx_seq: int, on: bool
    ) -> None:
        self._ctx, self._parking, self._counters = ctx, parking, counters
        self._n_ctx_seq = n_ctx_seq
        self.on = on

    def is_due(self, seq: Sequence) -> bool:
        return self.on and len(seq.tokens) >= self._n_ctx_seq

    def make_room(self, seq: Sequence) -> None:
        """Forget some of all tokens but the last.

        Where it has cells, a decode must come before anything else: see `Context.shift`.
        """
        keep = seq.n_prompt if seq.n_keep < 0 else seq.n_keep
        keep = min(keep + self._ctx.model.add_bos, self._n_ctx_seq - 4)
        left = len(seq.tokens) - 1 - keep
        discard = min(seq.n_discard or left // 2, left - 1)
        if seq.cells:
            self._ctx.shift(seq.slot, keep, discard)
            seq.cells -= discard
        del seq.tokens[keep : keep + discard]
        seq.shifted += discard
        self._parking.drop(seq)
        self._counters.context_shifts_total += 1
