"""What the page shows of a chat: the turns of the path that is read, each with what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Prefetch, prefetch_related_objects

from inference.models import Chat, Generation, Message

from . import conversation, operators, wording


@dataclass(frozen=True, slots=True)
class Turn:
    """One message as `message.html` shows it, with its last generation and its place among its versions."""

    pk: int
    role: str
    text: str  # of one that is being written: what was there before, since its stream tells the rest
    generation: Generation | None
    pending: bool  # more comes
    note: str  # how it ended
    advice: str  # what to do about it, while the turn is the last
    look: str
    unfinished: bool  # it could go on
    version: int  # from 1 to `versions`, in the order of their making
    versions: int
    previous: int | None  # the primary keys of the versions beside it
    following: int | None


def thread(chat: Chat) -> list[Turn]:
    """The turns that are read, oldest first."""
    messages = chat.path()
    generations = operators.noted(Generation.objects.order_by("created_at"))
    prefetch_related_objects(messages, Prefetch("generations", generations))
    versions: dict[int | None, list[int]] = {}
    for pk, parent in chat.messages.values_list("pk", "parent"):
        versions.setdefault(parent, []).append(pk)
    return [_turn(message, versions[message.parent_id]) for message in messages]


def _turn(message: Message, versions: list[int]) -> Turn:
    generation = next(reversed(message.generations.all()), None)
    pending = generation is not None and not generation.is_over
    at = versions.index(message.pk)
    ended, has_text = generation is not None and operators.was_ended(generation), bool(message.content)
    return Turn(
        pk=message.pk,
        role=message.role,
        text=message.content[: generation.goes_on_from] if generation and pending else message.content,
        generation=generation,
        pending=pending,
        note=wording.note(generation, by_operator=ended) if generation else "",
        advice=wording.advice(generation, has_text=has_text, by_operator=ended) if generation else "",
        look=wording.look(generation) if generation else "",
        unfinished=generation is not None and conversation.is_unfinished(generation),
        version=at + 1,
        versions=len(versions),
        previous=versions[at - 1] if at else None,
        following=versions[at + 1] if at + 1 < len(versions) else None,
    )
