"""What the page shows of a chat: the messages of the path that is read, each with what became of it."""

from __future__ import annotations

from django.db.models import Prefetch, prefetch_related_objects

from inference.models import Chat, Generation, Message

from . import conversation, wording


def thread(chat: Chat) -> list[Message]:
    """The messages that are read, oldest first, dressed for `message.html`.

    Each has, of its last generation: `generation`, `pending`, `shown` (its text; what comes of a pending one
    is for the stream to tell), `note`, `look` and `unfinished`; and of its versions, oldest first: `version`
    and `versions` (numbers), `previous` and `following` (primary keys, None at the ends).
    """
    messages = chat.path()
    prefetch_related_objects(messages, Prefetch("generations", Generation.objects.order_by("created_at")))
    versions: dict[int | None, list[int]] = {}
    for pk, parent in chat.messages.values_list("pk", "parent"):
        versions.setdefault(parent, []).append(pk)
    for message in messages:
        _dress(message, versions[message.parent_id])
    return messages


def _dress(message: Message, versions: list[int]) -> None:
    generation = next(reversed(message.generations.all()), None)
    pending = generation is not None and not generation.is_over
    at = versions.index(message.pk)
    dress = {
        "generation": generation,
        "pending": pending,
        "shown": message.content[: generation.goes_on_from] if generation and pending else message.content,
        "note": wording.note(generation) if generation else "",
        "look": generation.state if generation else "",
        "unfinished": generation is not None and conversation.is_unfinished(generation),
        "version": at + 1,
        "versions": len(versions),
        "previous": versions[at - 1] if at else None,
        "following": versions[at + 1] if at + 1 < len(versions) else None,
    }
    vars(message).update(dress)
