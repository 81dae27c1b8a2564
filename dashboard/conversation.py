"""Turns of a chat: what the model reads of it, how a turn begins, and how one is ended."""

from __future__ import annotations

import contextlib
import time
import uuid
from dataclasses import asdict

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from inference import limits, recorder
from inference.broker import admission, control, jobs, log, occupancy
from inference.broker.connect import AWAY
from inference.messages import NORMAL, Failed, Finished, GenerationRequest, Job, SamplingParams
from inference.models import Chat, Generation, Message, UserLimits

API = "chat"  # how generations of these pages are named among those of the API
FULL = "There is no room for one more answer just now. Your text is still here; send it again in a moment."
UNREACHABLE = "the model can't be reached"
LOST = "it was lost before a worker had it"


class Busy(Exception):
    """The chat is still being answered."""


class Refused(Exception):
    """There is no room for one more answer: the HTTP status and what a person reads of it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


def history(chat: Chat) -> list[dict[str, str]]:
    """Pairs of question and answer, then the question that is open. Questions left without an answer are
    dropped, since the chat templates of many models insist that the roles alternate."""
    turns: list[dict[str, str]] = []
    for turn in chat.history():
        if turns and turns[-1]["role"] == turn["role"] == Message.Role.USER:
            turns.pop()
        turns.append(turn)
    return turns


def begin(chat: Chat, user: User, text: str) -> list[Message]:
    """Keep `text` and ask for its answer: the two new messages. A chat without a row gets one. Raises Busy
    and Refused, with nothing kept.

    With Redis away the message is kept all the same, and its generation has failed.
    """
    on_the_way = Generation.objects.none()
    if chat.pk is not None:
        on_the_way = Generation.objects.filter(message__chat=chat).exclude(state__in=Generation.OVER)
    for generation in on_the_way.all():  # a copy: the rows may be others below
        settle(generation)
    priority = max(NORMAL, UserLimits.ceiling(user))
    id, model = uuid.uuid4(), _model()
    _admit(id.hex, user)  # before the rows, so that no lock is held while Redis answers
    try:
        with transaction.atomic():
            if chat.pk is None:
                chat.save()
            chat.leaf_id = Chat.objects.select_for_update().get(pk=chat.pk).leaf_id
            if on_the_way.exists():
                raise Busy
            question = chat.add(Message.Role.USER, text)
            answer = chat.add(Message.Role.ASSISTANT)
            generation = Generation.objects.create(
                id=id,
                api=API,
                model=model,
                user=user,
                message=answer,
                stream=True,
                priority=priority,
            )
            chat.save(update_fields=["updated_at"])
    except BaseException:
        with contextlib.suppress(*AWAY):
            admission.release_sync(id.hex)
        raise
    request = GenerationRequest(
        messages=tuple(history(chat)),
        sampling=SamplingParams(temperature=settings.BERTH.temp, seed=settings.BERTH.seed),
        max_tokens=longest(),
        stream=True,
        priority=priority,
    )
    job = Job(
        generation.id.hex,
        "generate",
        request.to_dict(),
        "",
        owner=user.get_username(),
        submitted_at=time.time(),
    )
    try:
        jobs.submit_sync(job, {})
    except AWAY:
        fail(generation, UNREACHABLE)
    return [question, answer]


def _model() -> str:
    """The name of the model that will answer, as a worker tells it."""
    with contextlib.suppress(*AWAY):
        for snapshot in occupancy.get_all_sync():
            if alias := snapshot.get("model", {}).get("alias", ""):
                return str(alias)
    return settings.BERTH.alias


def _admit(id: str, user: User) -> None:
    """Take room for one answer. Raises Refused. With Redis away, what comes next will find it so."""
    try:
        limits.admit_one_sync(id, user)
    except AWAY:
        pass
    except admission.Full as full:
        name, limit = full.account
        if name == admission.EVERYBODY:
            raise Refused(503, FULL) from None
        answers = "one answer" if limit == 1 else f"{limit} answers"
        advice = "Wait until one is done, or stop one; your text is still here."
        raise Refused(429, f"You may have {answers} on the way at once. {advice}") from None


def longest() -> int:
    """Tokens of an answer, at most; -1: up to the context."""
    bounds = [n for n in (settings.BERTH.n_predict, settings.BERTH.longest) if n != -1]
    return min(bounds, default=-1)


def settle(generation: Generation) -> None:
    """Write the end of a generation whose row lags behind, since a person can be faster than the recorder, or
    which has come to an end that nobody can tell."""
    try:
        events = log.read_sync(generation.id.hex)
        if is_lost(generation):
            fail(generation, LOST)
    except AWAY:
        return
    if events and isinstance(last := events[-1][1], Finished | Failed):
        id = generation.id.hex
        record = {"id": id, "kind": last.kind, "worker": "", "at": time.time(), "data": asdict(last)}
        recorder.write_batch([("", record)])


def is_lost(generation: Generation) -> bool:
    """Whether there are workers and none of them has it or will: its web process died before it had asked
    for it, or Redis lost it. Raises RedisError or OSError while Redis is away."""
    id = generation.id.hex
    alive, known = occupancy.overview_sync()
    return alive and id not in known and not log.read_sync(id) and not jobs.is_waiting_sync(id)


def stop(generation: Generation) -> None:
    """End it, in whatever state it is. Raises RedisError or OSError while Redis is away."""
    id = generation.id.hex
    control.cancel_sync(id)
    if is_lost(generation) or not (log.read_sync(id) or occupancy.get_all_sync()):
        # no worker will tell that it has ended
        admission.release_sync(id)
        generation.state = Generation.State.CANCELLED
        generation.finish_reason = Generation.FinishReason.CANCELLED
        generation.finished_at = timezone.now()
        generation.save(update_fields=["state", "finish_reason", "finished_at"])


def fail(generation: Generation, error: str) -> None:
    generation.state, generation.error, generation.finished_at = (
        Generation.State.FAILED,
        error,
        timezone.now(),
    )
    generation.save(update_fields=["state", "error", "finished_at"])
