"""What the log of a generation tells of its life with another worker, so that this one can go on with it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from inference.messages import Accepted, Event, Preempted, Prioritised, Released, Resumed, Started, Token

from .context_shift import ContextShift
from .llama import Model
from .sequence import Sequence


@dataclass(slots=True)
class Past:
    """In seconds. Times are given by how long ago they were, since the clocks of two workers differ."""

    tokens: list[int] = field(default_factory=list)  # that were generated
    seed: int = -1
    is_started: bool = False  # it has had a slot
    is_parked: bool = False
    is_held: bool = False  # by an operator
    slot: int = -1
    cause: str = ""
    priority: int | None = None  # that an operator gave it
    parks: int = 0
    parked_s: float = 0.0
    prompt_s: float = 0.0
    decode_s: float = 0.0
    accepted_ago: float = 0.0
    first_token_ago: float = 0.0
    parked_ago: float = 0.0  # of one that was not parked: how long ago it was heard of
    gone: str = "worker"  # or "client": it was cancelled when its client left, who is back

    @classmethod
    def of(cls, history: Iterable[tuple[Event, float]], now: float, gone: str = "worker") -> Past:
        """From its events, each with the time when it was written, of the same clock as `now`."""
        past = cls(gone=gone)
        active_since = at = now
        for event, at in history:
            if type(event) is Token:
                if not past.tokens:
                    past.first_token_ago = now - at
                    past.prompt_s += at - active_since
                    active_since = at
                past.tokens.append(event.token)
            elif isinstance(event, Accepted):
                past.accepted_ago, past.seed = now - at, event.seed
            elif isinstance(event, Started):
                past.is_started, past.slot, active_since = True, event.slot, at
            elif isinstance(event, Preempted):
                past.is_parked, past.slot, past.cause = True, event.slot, event.cause
                past.is_held = event.cause == "hand"
                past.parks += 1
                past.parked_ago = now - at
                if past.is_started:
                    past._account(at - active_since)
            elif isinstance(event, Resumed):
                past.is_parked = past.is_held = False
                past.slot, active_since = event.slot, at
                past.parked_s += event.waited
            elif isinstance(event, Released):
                past.is_held = False
            elif isinstance(event, Prioritised):
                past.priority = event.priority
        if not past.is_parked:
            past.parked_ago = now - at
            if past.is_started:
                past._account(at - active_since)
        if not past.tokens:  # its prompt is processed again, and counts then
            past.prompt_s = 0.0
        return past

    @property
    def is_queued(self) -> bool:
        """It waited for its first place, and was told of no park."""
        return not (self.is_started or self.is_parked)

    def _account(self, seconds: float) -> None:
        if self.tokens:
            self.decode_s += seconds
        else:
            self.prompt_s += seconds


def rebuild(seq: Sequence, past: Past, model: Model, shift: ContextShift, now: float) -> None:
    """Bring a sequence that has its prompt into the state in which it was left. `now`: the engine's clock."""
    seq.arrived_at = seq.since = now - past.accepted_ago
    seq.started, seq.slot = past.is_started, past.slot
    if past.priority is not None:
        seq.priority = past.priority
    seq.parks, seq.parked_s = past.parks, past.parked_s
    seq.prompt_s, seq.decode_s = past.prompt_s, past.decode_s
    if past.tokens:
        seq.first_token_at = now - past.first_token_ago
    for token in past.tokens:
        if shift.is_due(seq):
            shift.make_room(seq)
        seq.tokens.append(token)
        if token not in model.eog:
            seq.text.push(model.piece(token))
    seq.sampler.replay(past.tokens)
