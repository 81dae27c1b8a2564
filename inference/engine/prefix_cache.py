"""Computed prompts in host RAM: a prompt that begins as an earlier one did is not computed from its start.

As in vLLM's prefix caching a prompt is cut into blocks, and a block's key is a digest of all tokens up to its
end. The KV cache itself keeps nothing between requests: to the scheduler the pool is empty when nobody is
there. A block comes back in a hundredth of the time in which it is computed.
"""

from __future__ import annotations

import math
from array import array
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import takewhile

from .counters import Counters
from .llama import Context, SavedState
from .parking import PIECE
from .places import Places
from .sequence import Sequence, Work

BLOCK = PIECE
NOBODY_DECODES_S = 0.2  # a step may take so long then


@dataclass(frozen=True, slots=True)
class Block:
    """`is_lone`: it was computed as it always is while nobody else is in the pool, to the last bit."""

    state: SavedState
    is_lone: bool


class PrefixCache:
    """Saves what is computed of prompts, and loads it instead of computing it again.

    Only sequences of one account share blocks: how soon a prompt is read would tell others of it. One that is
    alone takes only what was computed so, and at the places at which a lone prompt is cut, so that its text
    does not depend on what was asked before it.

    Args:
        budget: bytes of host RAM, -1 for no bound, 0 for no cache.
        lone_chunk: tokens of a prompt that a step takes when it is alone.
    """

    def __init__(
        self,
        ctx: Context,
        places: Places,
        counters: Counters,
        clock: Callable[[], float],
        *,
        budget: int,
        lone_chunk: int,
    ) -> None:
        self._ctx, self._places, self._counters, self._clock = ctx, places, counters, clock
        self._budget = budget if budget >= 0 else math.inf
        self._lone_chunk = lone_chunk
        self._chunk = math.lcm(BLOCK, lone_chunk) // BLOCK  # blocks
        self._blocks: OrderedDict[bytes, Block] = OrderedDict()  # the first is the first to be dropped
        self.is_on = budget != 0 and ctx.swap == "pieces"
        self.nbytes = 0

    # --- before the step ------------------------------------------------------------------------

    def load(self, work: list[Work], n_cells: int, seconds: float) -> list[Work]:
        """Bring in what is known of the step's prompts. Returns what is left to compute.

        `n_cells` is the pool, in which the others' part of the step must still fit; `seconds`, how long those
        that decode may be kept waiting.
        """
        if not self.is_on or not work or work[-1][0].decoding:  # those that decode come first
            return work
        until = self._clock() + (seconds if work[0][0].decoding else NOBODY_DECODES_S)
        needed = sum(n for _, n in work)
        left: list[Work] = []
        for seq, n in work:
            if seq.cells == 0 and seq.is_cacheable:
                self._look_up(seq)
            if seq.known and self._load(seq, n_cells - needed + n, until):
                needed -= n  # the plan did not know how far it would come: it computes from the next step on
            else:
                left.append((seq, n))
        return left

    def _look_up(self, seq: Sequence) -> None:
        if not seq.keys:
            seq.keys = _keys(seq)
        is_alone = self._is_alone(seq)
        # The last token's logits are needed, so that it is computed in any case.
        wanted = (self._blocks.get(key) for key in seq.keys[: (seq.n_prompt - 1) // BLOCK])
        found = list(takewhile(lambda block: block and (block.is_lone or not is_alone), wanted))
        del found[len(found) - len(found) % self._chunk :]
        seq.known = [block.state for block in reversed(found) if block]
        seq.saved, seq.lone = 0, 0
        self._touch(seq.keys[: len(found)])

    def _load(self, seq: Sequence, n_cells: int, until: float) -> bool:
        """Its next blocks. False when there is no room for any: then it is computed, and from there on."""
        first, is_alone = seq.cells, self._is_alone(seq)
        while seq.known and n_cells - self._places.used_cells >= BLOCK:
            if not self._ctx.load_piece(seq.slot, seq.known[-1]):
                break
            seq.known.pop()
            seq.cells += BLOCK
            if self._clock() >= until:
                break
        if seq.cells == first:
            seq.known.clear()
            return False
        seq.saved = seq.cells // BLOCK
        if is_alone and seq.lone == first:
            seq.lone = seq.cells
        self._account(seq, seq.cells - first)
        return True

    def _account(self, seq: Sequence, n: int) -> None:
        self._counters.prompt_tokens_cached_total += n
        if not seq.first_token_at:
            seq.cached = max(seq.cached, seq.cells)
        if seq.redo and seq.cells >= seq.redo:
            seq.pause_clock(self._clock())
            seq.redo = 0

    # --- after it -------------------------------------------------------------------------------

    def save(self, seq: Sequence, n: int, is_only: bool) -> None:
        """Keep the blocks that are whole now that `n` more of its tokens are computed. `is_only`: nobody else
        was in the batch."""
        start = seq.cells - n
        if is_only and seq.lone == start and start % self._lone_chunk == 0 and self._is_alone(seq):
            seq.lone += n
        for i in range(seq.saved, min(seq.cells, seq.n_prompt, BLOCK * len(seq.keys)) // BLOCK):
            self._save(seq, i)
            seq.saved = i + 1
        if seq.cells >= seq.n_prompt:
            self._touch(seq.keys)

    def _save(self, seq: Sequence, i: int) -> None:
        end = BLOCK * (i + 1)
        is_lone = end <= seq.lone - seq.lone % self._lone_chunk
        old = self._blocks.get(seq.keys[i])
        if old and (old.is_lone or not is_lone):
            return
        state = self._ctx.save_piece(seq.slot, end - BLOCK, end)
        # One larger than the budget would drop its own first blocks, without which none is of use.
        if state is None or state.nbytes * (i + 1) > self._budget:
            return
        if old:
            self._drop(seq.keys[i])
        while self.nbytes + state.nbytes > self._budget:
            self._drop(next(iter(self._blocks)))
        self._blocks[seq.keys[i]] = Block(state, is_lone)
        self.nbytes += state.nbytes

    # --------------------------------------------------------------------------------------------

    def _is_alone(self, seq: Sequence) -> bool:
        """Whether nobody else has a cell or is about to get one."""
        return self._places.used_cells == seq.cells and len(self._places.residents) == 1

    def _touch(self, keys: list[bytes]) -> None:
        """They are dropped last, and from their end on."""
        for key in reversed(keys):
            if key in self._blocks:
                self._blocks.move_to_end(key)

    def _drop(self, key: bytes) -> None:
        self.nbytes -= self._blocks.pop(key).state.nbytes


def _keys(seq: Sequence) -> list[bytes]:
    """One for each whole block of its prompt."""
    digest = blake2b(f"{seq.account}\0".encode(), digest_size=16)
    keys: list[bytes] = []
    for end in range(BLOCK, seq.n_prompt + 1, BLOCK):
        digest.update(array("i", seq.tokens[end - BLOCK : end]).tobytes())
        keys.append(digest.digest())
    return keys
