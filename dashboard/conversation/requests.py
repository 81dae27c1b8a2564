"""What asks a worker for an answer, made of rows alone: what the model reads, and how it is to write."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings

from inference import limits
from inference.messages import GenerationRequest, Job, SamplingParams
from inference.models import Chat, Generation, Message


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


def _sampling(chat: Chat, answer: Message) -> SamplingParams:
    """The chat's settings, or the server's. Each version of an answer has a seed of its own, as the choices
    of an API request have: another of the same seed would say the same again."""
    usual = {"temperature": settings.BERTH.temp, "seed": settings.BERTH.seed}
    own = {"temperature": chat.temperature, "top_p": chat.top_p, "seed": chat.seed}
    chosen: dict[str, Any] = usual | {name: value for name, value in own.items() if value is not None}
    version = Message.objects.filter(parent=answer.parent_id, pk__lt=answer.pk).count()
    return SamplingParams(**chosen).for_choice(version)


def longest(asked: int | None = None) -> int:
    """Tokens of an answer for which so many were asked, at most, where the context has room for so many."""
    return min(n for n in (settings.BERTH.n_predict, settings.BERTH.longest, asked or -1) if n != -1)
