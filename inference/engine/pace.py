"""How many prompt tokens a step may take, so that it ends in time for the neighbours."""

from __future__ import annotations


class PrefillPace:
    """Learns what a decode step and a prompt token cost, and bounds a step's prompt tokens by time."""

    def __init__(self, target_s: float, first_guess: int = 32) -> None:
        self._target = target_s
        self._per_token = target_s / first_guess
        self.decode_step = 0.0  # seconds; 0 until one was observed

    def tokens(self, residents_decoding: int) -> int:
        """The prompt tokens that fit beside the decoding residents; at least 8."""
        room = self._target - (self.decode_step if residents_decoding else 0.0)
        return max(8, int(room / self._per_token))

    def observe(self, seconds: float, prompt_tokens: int, decode_tokens: int) -> None:
        """Account for a step that computed so many tokens of each kind."""
        if prompt_tokens == 0:
            self.decode_step += 0.2 * (seconds - self.decode_step) if self.decode_step else seconds
        elif prompt_tokens >= 8:
            cost = max(seconds - (self.decode_step if decode_tokens else 0.0), 0.1 * seconds) / prompt_tokens
            # Faster up than down: one slow step is felt by everybody, one fast step by nobody.
            self._per_token += (0.5 if cost > self._per_token else 0.2) * (cost - self._per_token)
