"""Sequences that begin with what another worker left."""

from __future__ import annotations

from inference.engine.engine import Engine
from inference.engine.llama import Context
from inference.engine.past import Past
from inference.engine.sampling import Sampler
from inference.engine.sequence import Sequence
from inference.engine.text import TextAssembler
from inference.messages import SamplingParams

from .conftest import Run

PROMPT = [*range(1000, 1012)]
N = 20


class Lives(Run):
    """A run that begins with what another worker left."""

    def sequence(
        self, sampling: SamplingParams, n: int = N, stop: tuple[str, ...] = (), prompt: list[int] = PROMPT
    ) -> Sequence:
        sampler = Sampler(self.engine.ctx.model, sampling)
        sampler.accept_prompt(prompt)
        seq = Sequence(str(len(self.events)), list(prompt), sampler, TextAssembler(stop), n)
        self.events[seq.id] = []
        return seq

    def take_over(self, *lives: tuple[Sequence, Past]) -> None:
        self.engine.take_over(lives)
        for id, event in self.engine.drain():
            self.events[id].append(event)


def engine(context: Context, **kwargs: object) -> Engine:
    return Engine(context, **{"n_cells": 256, "n_slots": 4, "n_ctx_seq": 256, **kwargs})  # type: ignore[arg-type]
