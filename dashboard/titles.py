"""Titles that the model makes: after the first answer of a chat, when nobody else wants to be computed.

A title is a generation of its own, of the lowest priority and without a message. It takes no room from
anybody's limit, and its end comes to a recorder as any other's does: whichever web process that is in finds
in Redis which chat it is for. Where one fails or is lost, the chat keeps its first words.
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

from django.db.models import Exists, OuterRef

from inference.broker import jobs, keys, log, people
from inference.broker.connect import sync_client
from inference.messages import LOWEST, Finished, GenerationRequest, Job, SamplingParams, Token
from inference.models import TITLE_LENGTH, Chat, Generation

from . import background

logger = logging.getLogger(__name__)

API = "title"  # how these generations are named among those of the API
TOKENS = 24  # of a title, at most
WORDS = 6  # that are asked for; a question of so few is its own title
MOST_WORDS = 10  # longer, and it is an answer instead
LASTS_S = 86_400  # a title that has not come by then is wanted no more
EXCERPT = 600  # characters of the question that it is made of
ASK = f"Give this message a title of two to {WORDS} words, in its language: "
EXAMPLES = (  # small models answer the message without them
    ("How long do I boil an egg so that the yolk stays soft?", "Boiling a soft egg"),
    ("Can you help me plan a week in Rome with two kids?", "A week in Rome with kids"),
    ("My printer says it is offline but the cable is fine. What now?", "Printer that says it is offline"),
)
MARKS = " \t\"'`*_#~«»“”„‘’.,:;-–—"  # around what a model gives as a title


def start_thread() -> Callable[[Sequence[str]], None]:
    """Start the thread that makes titles; what to call, from any thread, with generations that are over."""
    over: SimpleQueue[Sequence[str]] = SimpleQueue()
    threading.Thread(target=_run, args=(over,), name="titles", daemon=True).start()
    return over.put


def _run(over: SimpleQueue[Sequence[str]]) -> None:
    while True:
        ids = over.get()
        with background.attempt(logger, "Some chats keep their first words as a title"):
            look_at(ids)


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
    """Those that wrote the first answer of a chat which nobody has named, to a question of many words."""
    written = Generation.objects.filter(state__in=(Generation.State.FINISHED, Generation.State.CANCELLED))
    others = written.filter(message__chat=OuterRef("message__chat")).exclude(pk=OuterRef("pk"))
    found = (
        written.filter(pk__in=[uuid.UUID(hex=id) for id in ids])
        .filter(message__parent__parent=None, message__chat__titled_by="", message__chat__deleted_at=None)
        .exclude(message__parent=None)
        .exclude(message__content="")
        .exclude(Exists(others))
        .select_related("message__parent", "message__chat__user")
    )
    return [generation for generation in found if len(_question(generation).split()) > WORDS]


def _chat(generation: Generation) -> Chat:
    assert generation.message
    return generation.message.chat


def _question(generation: Generation) -> str:
    assert generation.message
    assert generation.message.parent
    return " ".join(generation.message.parent.content.split())[:EXCERPT]


def _ask(generation: Generation) -> None:
    turns = [*EXAMPLES, (_question(generation), "")]
    messages = [
        {"role": role, "content": text}
        for question, title in turns
        for role, text in (("user", ASK + question), ("assistant", title))
        if text
    ]
    request = GenerationRequest(
        messages=tuple(messages),
        sampling=SamplingParams(temperature=0.0),
        max_tokens=TOKENS,
        priority=LOWEST,
    )
    id, chat = uuid.uuid4().hex, _chat(generation)
    owner = chat.user.get_username()
    record = {"api": API, "model": generation.model, "user_id": chat.user.pk, "priority": LOWEST}
    sync_client().set(keys.title(id), chat.pk, ex=LASTS_S)
    # Of no account: all titles are asked for with the same examples, which are computed once.
    jobs.submit_sync(Job(id, "generate", request.to_dict(), "", owner, time.time()), record)


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
    """A title out of what a model wrote, which may be a small one: one line without marks around it, of
    TITLE_LENGTH characters and MOST_WORDS words at most. "" for what is none."""
    lines = [line for raw in text.replace("\0", "").splitlines() if (line := " ".join(raw.split()))]
    if not lines or lines[0].startswith("<"):  # it thinks aloud
        return ""
    line = re.sub(r"^\W*(title|titel)\W*:\W*", "", lines[0] + "\n", flags=re.IGNORECASE).strip()
    line = (line or " ".join(lines[1:2])).strip(MARKS)
    is_one = len(line) <= TITLE_LENGTH and len(line.split()) <= MOST_WORDS and any(map(str.isalnum, line))
    return line if is_one else ""
