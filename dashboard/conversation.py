"""Turns of a chat: what the model reads of it, how a turn begins, and how one is ended."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from inference import limits, recorder
from inference.broker import admission, control, jobs, log, occupancy
from inference.broker.connect import AWAY
from inference.messages import NORMAL, Failed, Finished, GenerationRequest, Job, SamplingParams
from inference.models import Chat, Generation, Message, Share, UserLimits

API = "chat"  # how generations of these pages are named among those of the API
UNREACHABLE = "the model can't be reached"
LOST = "it was lost when Redis was restarted"
YOUNG = timedelta(seconds=20)  # so old, what asks for it is in Redis or will never be
CONTEXT_SIZE = "context size"  # a part of what a worker says of a prompt that is too long


class Busy(Exception):
    """The chat is still being answered."""


class Refused(Exception):
    """There is no room for one more answer: the HTTP status and what a person reads of it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class NotPossible(Exception):
    """An answer that cannot be continued; the message says why."""


def history(chat: Chat) -> list[dict[str, str]]:
    """What the model reads: the chat's system prompt, pairs of question and answer, and the question that is
    open or the answer that goes on. Questions left without an answer are dropped, since the chat templates of
    many models insist that the roles alternate."""
    turns: list[dict[str, str]] = []
    for turn in chat.history():
        if turns and turns[-1]["role"] == turn["role"] == Message.Role.USER:
            turns.pop()
        turns.append(turn)
    system = {"role": Message.Role.SYSTEM.value, "content": chat.system_prompt}
    return [system, *turns] if chat.system_prompt else turns


# --- how an answer is asked for: each returns the new messages, the answer last ---------------------
# All raise Busy and Refused, and Chat.DoesNotExist when the chat was deleted just now, with nothing changed.
# With Redis away the messages are kept all the same, and the answer's generation has failed.


def send(chat: Chat, user: User, text: str, after: Message | None = None) -> list[Message]:
    """Another message, `after` one or at the end of what is read. A chat without a row gets one."""
    return _ask(
        chat,
        user,
        lambda: [chat.add(Message.Role.USER, text, after=after), chat.add(Message.Role.ASSISTANT)],
    )


def edit(chat: Chat, user: User, question: Message, text: str) -> list[Message]:
    """Another version of a message of the user's; what followed the former one stays with that."""
    return _ask(
        chat,
        user,
        lambda: [chat.add(Message.Role.USER, text, beside=question), chat.add(Message.Role.ASSISTANT)],
    )


def regenerate(chat: Chat, user: User, answer: Message) -> list[Message]:
    """Another version of an answer; in the place of one that nothing was written of, unless others are shown
    that by a link."""

    def lay() -> list[Message]:
        answer.refresh_from_db(fields=["content"])
        if answer.content or answer.children.exists() or _is_shared(answer):
            return [chat.add(Message.Role.ASSISTANT, beside=answer)]
        chat.show(answer)
        return [answer]

    return _ask(chat, user, lay)


def go_on(chat: Chat, user: User, answer: Message) -> list[Message]:
    """More of an answer that was stopped, cut off or failed. Raises NotPossible."""

    def lay() -> list[Message]:
        answer.refresh_from_db(fields=["content"])
        last = answer.generations.order_by("created_at").last()
        if answer.children.exists():
            raise NotPossible(_("Only the last answer of a chat can be continued."))
        if not (answer.content and last and is_unfinished(last)):
            raise NotPossible(_("This answer can't be continued: it is complete, or the context is full."))
        if _is_shared(answer):
            return [chat.add(Message.Role.ASSISTANT, answer.content, beside=answer)]
        chat.show(answer)
        return [answer]

    return _ask(chat, user, lay)


def _is_shared(answer: Message) -> bool:
    """Whether a link shows the chat up to this answer: that stays as it is."""
    return Share.objects.filter(leaf=answer, revoked_at=None).exists()


def _ask(chat: Chat, user: User, lay: Callable[[], list[Message]]) -> list[Message]:
    """Ask for the answer that `lay` returns last, which goes on where its content ends.

    `lay` runs under the chat's lock, once it is known that nothing else is being written there.
    """
    on_the_way = Generation.objects.none()
    if chat.pk is not None:
        on_the_way = Generation.objects.filter(message__chat=chat).exclude(state__in=Generation.OVER)
    for generation in on_the_way.all():  # a copy: the rows may be others below
        settle(generation)
    priority = max(NORMAL, UserLimits.ceiling(user))
    max_tokens = longest(chat.max_tokens)
    id, model = uuid.uuid4(), _model()
    _admit(id.hex, user)  # before the rows, so that no lock is held while Redis answers
    try:
        with transaction.atomic():
            if chat.pk is None:
                chat.save()
            chat.leaf_id = Chat.objects.of(user).select_for_update().get(pk=chat.pk).leaf_id
            if on_the_way.exists():
                raise Busy
            messages = lay()
            answer = messages[-1]
            generation = Generation.objects.create(
                id=id,
                api=API,
                model=model,
                user=user,
                message=answer,
                goes_on_from=len(answer.content),
                max_tokens=max_tokens,
                stream=True,
                priority=priority,
            )
            chat.save(update_fields=["updated_at"])
    except BaseException:
        with contextlib.suppress(*AWAY):
            admission.release_sync(id.hex)
        raise
    try:
        jobs.submit_sync(job(generation), {})
    except AWAY:
        fail(generation, UNREACHABLE)
    return messages


def job(generation: Generation) -> Job:
    """What asks for an answer, made of rows alone: the path up to its message, and its chat's settings."""
    assert generation.message is not None
    assert generation.user is not None
    answer, chat = generation.message, generation.message.chat
    chat.leaf = answer  # in memory: elsewhere another version may be read
    request = GenerationRequest(
        messages=tuple(history(chat)),
        sampling=_sampling(chat, answer),
        max_tokens=generation.max_tokens or -1,
        stream=True,
        priority=generation.priority,
    )
    return Job(
        generation.id.hex,
        "generate",
        request.to_dict(),
        "",
        owner=generation.user.get_username(),
        account=limits.name_of(generation.user),
        submitted_at=time.time(),
    )


def show(chat: Chat, message: Message) -> None:
    """Read on with this version, as it was last read."""
    with transaction.atomic():
        Chat.objects.select_for_update().get(pk=chat.pk)
        chat.show(message)


def _sampling(chat: Chat, answer: Message) -> SamplingParams:
    """The chat's settings, or the server's. Each version of an answer has a seed of its own, as the choices
    of an API request have: another of the same seed would say the same again."""
    usual = {"temperature": settings.BERTH.temp, "seed": settings.BERTH.seed}
    own = {"temperature": chat.temperature, "top_p": chat.top_p, "seed": chat.seed}
    chosen: dict[str, Any] = usual | {name: value for name, value in own.items() if value is not None}
    version = Message.objects.filter(parent=answer.parent_id, pk__lt=answer.pk).count()
    return SamplingParams(**chosen).for_choice(version)


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
            full_up = _("There is no room for one more answer just now. Try again in a moment.")
            raise Refused(503, full_up) from None
        most = ngettext(
            "You may have one answer on the way at once. Wait until it is done, or stop it.",
            "You may have %(limit)s answers on the way at once. Wait until one is done, or stop one.",
            limit,
        )
        raise Refused(429, most % {"limit": limit}) from None


def longest(asked: int | None = None) -> int:
    """Tokens of an answer for which so many were asked, at most, where the context has room for so many."""
    return min(n for n in (settings.BERTH.n_predict, settings.BERTH.longest, asked or -1) if n != -1)


def settle(generation: Generation) -> None:
    """Write the end of a generation whose row lags behind, since a person can be faster than the recorder;
    mend one that is lost."""
    try:
        events = log.read_sync(generation.id.hex)
        if timezone.now() - generation.created_at > YOUNG and is_lost(generation):
            mend(generation)
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
    return alive and id not in known and not log.read_sync(id) and id not in jobs.waiting_sync()


def can_be_asked_again(generation: Generation) -> bool:
    """Whether rows say all that it takes, and nobody has heard anything of it."""
    message = generation.message
    is_there = message is not None and message.chat.deleted_at is None and generation.user is not None
    return is_there and generation.started_at is None


def mend(generation: Generation) -> bool:
    """Ask again for one that is lost; one that had begun has failed. Whether it is asked for again. Raises
    RedisError or OSError while Redis is away."""
    if generation.started_at is None:
        return jobs.submit_again_sync(job(generation), {})
    fail(generation, LOST)
    return False


def is_at_limit(generation: Generation) -> bool:
    """Whether it has written as many tokens as it might. Else what cut it off is that the context is full."""
    return generation.completion_tokens == (generation.max_tokens or longest())


def is_unfinished(generation: Generation) -> bool:
    """Whether it has ended, but not because the model was done, and the model could go on."""
    if generation.state == Generation.State.FAILED:
        return CONTEXT_SIZE not in generation.error
    if generation.state == Generation.State.FINISHED:
        cut_off = generation.finish_reason == Generation.FinishReason.LENGTH and is_at_limit(generation)
        return cut_off or generation.finish_reason == Generation.FinishReason.CANCELLED
    return generation.state == Generation.State.CANCELLED


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
