"""How an answer is asked for, by laying a piece of the chat's tree.

Each way returns the new messages, the answer last. All raise Busy and Refused, and Chat.DoesNotExist when the
chat was deleted just now, with nothing changed. With Redis away the messages are kept all the same, and the
answer's generation has failed.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from inference import limits
from inference.broker import admission, jobs, occupancy
from inference.broker.connect import AWAY
from inference.messages import NORMAL
from inference.models import Chat, Generation, Message, Share, UserLimits

from .ends import fail, is_unfinished, settle
from .requests import job, longest

API = "chat"  # how generations of these pages are named among those of the API
UNREACHABLE = "the model can't be reached"


class Busy(Exception):
    """The chat is still being answered."""


class Refused(Exception):
    """There is no room for one more answer: the HTTP status and what a person reads of it."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


class NotPossible(Exception):
    """An answer that cannot be continued; the message says why."""


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


def show(chat: Chat, message: Message) -> None:
    """Read on with this version, as it was last read."""
    with transaction.atomic():
        Chat.objects.select_for_update().get(pk=chat.pk)
        chat.show(message)
