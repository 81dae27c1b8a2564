"""What a worker that is gone left: jobs, and in the logs of their generations how far each has come."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial

from inference.broker import log, streams
from inference.broker.connect import patiently
from inference.broker.job_reader import Claimed
from inference.broker.log import Dated
from inference.engine.past import Past
from inference.engine.sequence import Sequence
from inference.messages import TERMINAL, Accepted, Event, Failed, Job, Token

from .reception import Taken

CULPRIT = Failed(500, "server_error", "this request has ended its worker twice; it is not tried again")
LOST = log.UNREADABLE

Consider = Callable[[Job, dict[str, int]], Awaitable[Taken]]  # with the seeds that are known


@dataclass(slots=True)
class Left:
    """A job, and what is to be done with those of its generations that are not over."""

    job: Job
    gone: str
    histories: dict[str, list[Dated]]  # of those that are not over
    told: list[tuple[str, Event]] = field(default_factory=list)  # what is to be told of them now
    lives: list[tuple[Sequence, Past]] = field(default_factory=list)  # who goes on

    @property
    def numbers(self) -> dict[str, int]:
        """The number of the last event of each."""
        return {id: history[-1][0] if history else 0 for id, history in self.histories.items()}


async def look(claimed: Claimed, consider: Consider, n_vocab: int) -> Left:
    """Read the logs of a job, and rebuild what can go on. Waits for Redis while it is away.

    A job that was never accepted is considered as any other. A generation fails whose log cannot be read, has
    gaps or holds what is no token of this model.
    """
    job, culprit, gone = claimed
    if group := await patiently(partial(streams.group, job.id)):
        job = replace(job, reply_to=group)  # who reads it now
    histories = {id: await patiently(partial(log.history, id)) for id in job.generations()}
    left = Left(job, gone, {id: history for id, history in histories.items() if not _is_over(history)})
    told_for_all = _is_over(histories[job.id][:1])  # refused, answered, or cancelled before it was read
    if told_for_all or not left.histories:
        left.histories = {}
        return left
    is_accepted = any(histories.values())
    if not is_accepted:
        left.histories = {job.id: []}
        if job.id == culprit:
            left.told = [(job.id, CULPRIT)]
            return left
    accepted = {id: history[0][1] for id, history in left.histories.items() if history}
    seeds = {id: event.seed for id, event in accepted.items() if isinstance(event, Accepted)}
    taken = await consider(job, seeds)
    if taken[0][1] is None:
        left.told = [(id, taken[0][0]) for id in left.histories]
        return left
    now = time.time()
    for id, (event, seq) in zip(job.generations(), taken, strict=True):
        if not is_accepted:
            left.histories[id] = []
        elif id not in left.histories:
            continue
        assert seq is not None
        history = left.histories[id]
        if id == culprit:
            left.told.append((id, CULPRIT))
        elif not _is_sound(history, n_vocab):
            left.told.append((id, LOST))
        else:
            if not history:
                left.told.append((id, event))
            left.lives.append((seq, Past.of([(event, at) for _, event, at in history], now, gone)))
    return left


def _is_over(history: list[Dated]) -> bool:
    return bool(history) and isinstance(history[-1][1], TERMINAL) and not _is_unreadable(history)


def _is_sound(history: list[Dated], n_vocab: int) -> bool:
    """Whether an answer can go on from there: what its reader has heard is all there."""
    has_all = [number for number, _, _ in history] == list(range(1, len(history) + 1))
    tokens = (event.token for _, event, _ in history if type(event) is Token)
    return has_all and not _is_unreadable(history) and all(0 <= token < n_vocab for token in tokens)


def _is_unreadable(history: list[Dated]) -> bool:
    return bool(history) and history[-1][1] is log.UNREADABLE
