"""Titles that the model makes: after the first answer of a chat, when nobody else wants to be computed.

A title is a generation of its own, of the lowest priority and without a message. It takes no room from anybody's
limit, and its end comes to a recorder as any other's does: whichever web process that is in finds in Redis which
chat it is for. Where one fails or is lost, the chat keeps its first words.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

from django.conf import settings
from django.db import DatabaseError, close_old_connections

from inference.broker import jobs, keys, log, people
from inference.broker.connect import AWAY, sync_client
from inference.messages import LOWEST, Finished, GenerationRequest, Job, SamplingParams, Token
from inference.models import TITLE_LENGTH, Chat, Generation

logger = logging.getLogger(__name__)

API = "title"  # how these generations are named among those of the API
TOKENS = 24  # of a title, at most
WORDS = 6  # that are asked for, and kept of one that is far too long
LASTS_S = 86_400  # a title that has not come by then is wanted no more
EXCERPT = 600  # characters of the question, and of the answer, that it is made of
ASK = (
    "Write a title of two to {words} words for this conversation. Answer with the title alone.\n\n"
    "Question: {question}\n\nAnswer: {answer}"
)


def start_thread() -> Callable[[Sequence[str]], None]:
    """Start the thread that makes titles; what to call, from any thread, with the generations that are over."""
    over: SimpleQueue[Sequence[str]] = SimpleQueue()
    threading.Thread(target=_run, args=(over,), name="titles", daemon=True).start()
    return over.put


def _run(over: SimpleQueue[Sequence[str]]) -> None:
    while True:
        ids = over.get()
        close_old_connections()
        try:
            look_at(ids)
        except (*AWAY, DatabaseError) as error:
            logger.warning("Some chats keep their first words as a title: %s", error)
        except Exception:
            logger.exception("Some chats keep their first words as a title")
        finally:
            close_old_connections()


def look_at(ids: Sequence[str]) -> None:
    """Of generations that are over: take the titles, and ask for one where a chat has its first answer.
    Raises RedisError, OSError or DatabaseError."""
    chats: Any = sync_client().mget([keys.title(id) for id in ids])
    for id, chat in zip(ids, chats, strict=True):
        if chat is not None:
            _take(id, int(chat))
    for generation in _first_answers([id for id, chat in zip(ids, chats, strict=True) if chat is None]):
        _ask(generation)


def _first_answers(ids: Sequence[str]) -> list[Generation]:
    """Those that wrote the first answer of a chat which nobody has named."""
    written = (Generation.State.FINISHED, Generation.State.CANCELLED)
    ended = Generation.objects.filter(pk__in=[uuid.UUID(hex=id) for id in ids], state__in=written)
    ended = ended.filter(
        message__parent__parent=None, message__chat__titled_by="", message__chat__deleted_at=None
    ).exclude(message__content="")
    found = ended.exclude(message__parent=None).select_related("message__parent", "message__chat__user")
    return [g for g in found if not _others(g).filter(state__in=written).exists()]


def _others(generation: Generation) -> Any:
    assert generation.message
    return Generation.objects.filter(message__chat=generation.message.chat_id).exclude(pk=generation.pk)


def _ask(generation: Generation) -> None:
    message = generation.message
    assert message and message.parent
    question, answer = (" ".join(m.content.split())[:EXCERPT] for m in (message.parent, message))
    request = GenerationRequest(
        messages=({"role": "user", "content": ASK.format(words=WORDS, question=question, answer=answer)},),
        sampling=SamplingParams(temperature=0.0),
        max_tokens=TOKENS,
        priority=LOWEST,
    )
    user = message.chat.user
    id = uuid.uuid4().hex
    job = Job(id, "generate", request.to_dict(), "", owner=user.get_username(), submitted_at=time.time())
    record = {"api": API, "model": generation.model, "user_id": user.pk, "priority": LOWEST}
    sync_client().set(keys.title(id), message.chat_id, ex=LASTS_S)
    jobs.submit_sync(job, record)


def _take(id: str, chat: int) -> None:
    """Call the chat so, unless its owner has named it meanwhile."""
    events = [event for _, event in log.read_sync(id)]
    sync_client().delete(keys.title(id))
    if not events or not isinstance(last := events[-1], Finished) or last.stop_type == "cancelled":
        return
    title = clean("".join(event.text for event in events if isinstance(event, Token | Finished)))
    if title and Chat.objects.filter(pk=chat, titled_by="").update(
        title=title, titled_by=Chat.TitledBy.MODEL
    ):
        people.changed_sync(Chat.objects.values_list("user_id", flat=True).get(pk=chat), chat)


def clean(text: str) -> str:
    """A title out of what a model wrote, which may be a small one: one line without marks around it, TITLE_LENGTH
    characters at most. "" for what is none."""
    lines = [line for raw in text.replace("\0", "").splitlines() if (line := " ".join(raw.split()))]
    if not lines or lines[0].startswith("<"):  # it thinks aloud
        return ""
    line = re.sub(r"^[\s#>*_\-–—]*(?:title|titel)\b\W*", "", lines[0], flags=re.IGNORECASE) or " ".join(
        lines[1:2]
    )
    line = line.strip(" \t\"'`*_#~«»“”„‘’.,:;-–—")
    words = line.split()
    if len(words) > 2 * WORDS or len(line) > TITLE_LENGTH:
        line = " ".join(words[:WORDS]).rstrip(",.:;–—-") + "…"
    if len(line) > TITLE_LENGTH or not any(c.isalnum() for c in line):
        return ""
    return line
