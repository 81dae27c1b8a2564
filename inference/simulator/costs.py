"""What the work costs: seconds, as measured on two cores with SmolLM2-135M-Instruct Q4_1."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

DECODE_S = (
    (0, 0.0),
    (1, 1 / 60),
    (2, 2 / 77),
    (4, 4 / 101),
    (8, 8 / 101),
)  # sequences in the batch, one step


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds and bytes."""

    prompt_token_s: float = 0.004
    out_s: float = 0.023e-3  # a cell copied to host RAM
    in_s: float = 0.005e-3  # a cell copied back
    cell_bytes: int = 23_052
    step_target_s: float = 0.2  # how long a step with a prompt keeps its neighbours waiting

    def decode_s(self, n: int) -> float:
        """One step of n decoding sequences: measured, linear between and beyond."""
        at = min(max(1, bisect_left(DECODE_S, (n, 0.0))), len(DECODE_S) - 1)
        (n0, s0), (n1, s1) = DECODE_S[at - 1], DECODE_S[at]
        return s0 + (n - n0) * (s1 - s0) / (n1 - n0)

    def prefill_tokens(self, n_decoding: int) -> int:
        """The prompt tokens that a step may take beside n decoding sequences; at least 8."""
        return max(8, int((self.step_target_s - self.decode_s(n_decoding)) / self.prompt_token_s))


MEASURED = Costs()
