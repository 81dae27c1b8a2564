"""What a person's open pages are told as it happens: which of their chats have changed."""

from __future__ import annotations

from functools import partial

from django.contrib.auth.models import User
from django.db import transaction

from inference.broker import people
from inference.models import Chat


def changed(user: User, chat: Chat | int) -> None:
    """Have every open page of this person show the chat (a row, or the primary key of one that is gone) anew.

    Call it after each write. Inside a transaction it waits for the commit; while Redis is away it does
    nothing.
    """
    pk = chat if isinstance(chat, int) else chat.pk
    transaction.on_commit(partial(people.changed_sync, user.pk, pk), robust=True)
