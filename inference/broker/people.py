"""Tells a person's open pages that a chat of theirs has changed, in whichever web process they are.

The group message is only fast: what has changed is in a stream in Redis, which a page's feed reads when it is
told, and every now and then when it is not.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

from channels.layers import get_channel_layer
from django.conf import settings

from .connect import AWAY, async_client, sync_client
from .keys import changes

KEEP = 100  # changes; a page that has missed more is told of those
KEEP_S = 3600
NOTHING = "0-0"


def group(person: int) -> str:
    """The channel group of a person's feeds; a message to it has the type `chats.changed`."""
    return f"person.{person}"


def changed_sync(person: int, chat: int) -> None:
    """Tell the feeds of a person, by primary keys; for a thread. While Redis is away nobody is told: pages
    look for themselves when they are connected again."""
    layer: Any = get_channel_layer()
    config: Any = settings.CHANNEL_LAYERS["default"]["CONFIG"]  # the layer's own prefix wants an event loop
    pipe = sync_client().pipeline(transaction=False)
    pipe.xadd(changes(person), {"chat": chat}, maxlen=KEEP, approximate=False)
    pipe.expire(changes(person), KEEP_S)
    pipe.publish(f"{config['prefix']}__group__{group(person)}", layer.serialize({"type": "chats.changed"}))
    with contextlib.suppress(*AWAY):
        pipe.execute()


def is_place(text: str) -> bool:
    """Whether this can be where changes end."""
    return re.fullmatch(r"\d{1,15}-\d{1,10}", text) is not None


def last_sync(person: int) -> str:
    """`last` for a thread; "" while Redis is away."""
    with contextlib.suppress(*AWAY):
        return _place(sync_client().xrevrange(changes(person), count=1))
    return ""


async def last(person: int) -> str:
    """Where the changes of this moment end. Raises RedisError or OSError."""
    return _place(await async_client().xrevrange(changes(person), count=1))


def _place(found: Any) -> str:
    return str(found[0][0].decode()) if found else NOTHING


async def since(person: int, last: str) -> tuple[str, list[int]]:
    """Where the changes end now, and the chats that changed after `last`. Raises RedisError or OSError."""
    found: Any = await async_client().xrange(changes(person), min=f"({last}")
    if not found:
        return last, []
    chats = {fields.get(b"chat", b"") for _, fields in found}
    return found[-1][0].decode(), sorted(int(chat) for chat in chats if chat.isdigit())
