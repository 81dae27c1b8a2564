"""How a generation ends: all that it held is free, its accounts are closed, and it is told."""

from __future__ import annotations

from collections.abc import Callable

from inference.messages import Event, Failed, Finished, Timings

from .counters import Counters
from .parking import Parking
from .places import Places
from .room import Room
from .sequence import Sequence, State
from .trial import Trial


class Ends:
    """Ends sequences, in whatever state they are."""

    def __init__(
        self,
        places: Places,
        parking: Parking,
        room: Room,
        trial: Trial,
        counters: Counters,
        emit: Callable[[Sequence, Event], None],
        clock: Callable[[], float],
        *,
        n_ctx_seq: int,
    ) -> None:
        self._places, self._parking, self._room, self._trial = places, parking, room, trial
        self._counters, self._emit, self._clock = counters, emit, clock
        self._n_ctx_seq = n_ctx_seq

    def finish(self, seq: Sequence, stop_type: str) -> None:
        """Its text is complete, or it is cancelled."""
        now = self._clock()
        if seq.state is State.RESIDENT:
            seq.pause_clock(now)
        elif seq.state is not State.QUEUED:
            seq.parked_s += now - seq.parked_at
        bounded = seq.max_tokens >= 0 and seq.generated >= seq.max_tokens
        timings = Timings(
            cache_n=seq.cached,
            prompt_n=seq.n_prompt - seq.cached,
            prompt_ms=1e3 * seq.prompt_s,
            predicted_n=seq.generated,
            predicted_ms=1e3 * seq.decode_s,
        )
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

    def fail(self, seq: Sequence, message: str) -> None:
        """End a resident with the context error; the others live."""
        extra = {"n_prompt_tokens": seq.n_prompt, "n_ctx": self._n_ctx_seq}
        seq.pause_clock(self._clock())
        self._release(seq)
        self._emit(seq, Failed(500, "exceed_context_size_error", message, extra))

    def _release(self, seq: Sequence) -> None:
        """Free slot, cells and RAM, and close the books."""
        self._counters.tokens_predicted_seconds_total += seq.decode_s
        if seq.state is State.LEAVING:
            self._counters.parks[seq.cause, seq.method] += 1
        self._places.remove(seq)
        if seq.state in (State.QUEUED, State.PARKED):
            self._parking.drop(seq)
        else:
            self._parking.discard(seq)
            self._room.reset()
        self._trial.discard(seq.id)
        seq.state = State.OVER
        seq.sampler.close()
