from __future__ import annotations

import json
import time
from typing import Any

import pytest

from dashboard import conversation, events
from inference.broker import log
from inference.messages import Accepted, Failed, Finished, Preempted, Resumed, Started, Timings, Token
from inference.models import Generation
from inference.worker import takeover

ID = "0" * 32


def read(raw: bytes) -> tuple[str | None, str, Any]:
    fields = dict(line.split(": ", 1) for line in raw.decode().strip().split("\n"))
    return fields.get("id"), fields["event"], json.loads(fields["data"])


def test_the_id_of_an_event_is_its_generation_and_its_sequence_number():
    id, *rest = read(events.event(ID, 7, Token(1, "boat")))
    assert (id, rest) == (f"{ID}.7", ["token", "boat"])
    assert events.number(ID, f"{ID}.7".encode()) == 7


@pytest.mark.parametrize("id", ["", "7", f"{ID[1:]}1.7", f"{ID}.", f"{ID}.-1", f"{ID}.{'9' * 5000}", "ÿ"])
def test_an_id_that_is_none_of_the_generation_s_is_its_beginning(id):
    assert events.number(ID, id.encode("latin-1")) == 0


def test_text_with_line_breaks_stays_one_event():
    raw = events.event(ID, 1, Token(1, "a\nb\r\n\nc\u2028"))
    assert raw.count(b"\n") == 4
    assert read(raw)[2] == "a\nb\r\n\nc\u2028"


def test_a_token_that_shows_nothing_is_not_sent():
    assert events.event(ID, 3, Token(1, "")) == b""


def test_states_before_the_first_token():
    assert read(events.event(ID, 1, Accepted(5, 1, -1)))[1] == "accepted"
    assert read(events.event(ID, 2, Started(0)))[1:] == ("started", {"slot": 0})


def test_a_park_tells_since_when_and_why():
    since = time.time() - 3
    _, kind, data = read(events.event(ID, 4, Preempted(0, "pressure", 90, 1000), since))
    assert kind == "preempted"
    assert isinstance(data, dict)
    assert (data["since"], data["cause"]) == (since, "pressure")
    assert data["waited"] >= 3


def test_a_resume_tells_how_long_it_was():
    assert read(events.event(ID, 5, Resumed(0, 2.5)))[1:] == ("resumed", {"waited": 2.5})


CONTINUE, REGENERATE = "“Continue” goes on from here.", "“Regenerate” tries again."


@pytest.mark.parametrize(
    ("stop_type", "most", "look", "note", "advice", "unfinished"),
    [
        ("eos", 9, "finished", "", "", False),
        ("word", 9, "finished", "", "", False),
        ("cancelled", 10, "stopped", "Stopped.", "", True),
        ("limit", 9, "cut", "Cut off at the limit of 9 tokens.", CONTINUE, True),
        ("limit", None, "cut", "The model's context is full.", "Start a new chat to go on.", False),
    ],
)
def test_the_end_brings_the_last_text_and_says_how_it_came_and_what_to_do(
    stop_type, most, look, note, advice, unfinished
):
    end = Finished(stop_type, "", "!", 5, 9, False, 0, Timings(), 0, 0.0, 0.1)
    data = {"text": "!", "look": look, "unfinished": unfinished}
    without_text = REGENERATE if advice == CONTINUE else advice
    data |= {"note": note, "advice": advice, "advice_without_text": without_text}
    assert read(events.event(ID, 9, end, max_tokens=most))[1:] == ("finished", data)


EDIT = "Change your message with “Edit”, or start a new chat."


@pytest.mark.parametrize(
    ("error", "note", "advice", "without_text"),
    [
        (
            "it exceeds the available context size of 512 tokens",
            "This chat is too long for the model.",
            "Shorten your message with “Edit”, or start a new chat.",
            None,
        ),
        (conversation.UNREACHABLE, "The model can't be reached.", CONTINUE, REGENERATE),
        (conversation.LOST, "This answer was lost when the server was restarted.", CONTINUE, REGENERATE),
        (
            log.UNREADABLE.message,
            "A part of this answer was lost.",
            "“Regenerate” has it written anew.",
            None,
        ),
        (takeover.CULPRIT.message, "The model broke down at this answer twice", EDIT, None),
        ("the KV cache has no cells left", "There was no room for more", CONTINUE, REGENERATE),
        ("the chat template refuses", "This model can't read this chat.", "Change your message", None),
        ("the cable broke.", "No more of this answer: the cable broke.", CONTINUE, REGENERATE),
        ("", "No more of this answer: something broke.", CONTINUE, REGENERATE),
    ],
)
def test_a_failure_says_what_to_do_in_the_words_of_the_page(error, note, advice, without_text):
    _, kind, data = read(events.event(ID, 1, Failed(500, "server_error", error)))
    assert (kind, data["look"]) == ("failed", "failed")
    assert data["note"].startswith(note)
    assert data["advice"].startswith(advice)
    assert data["advice_without_text"].startswith(without_text or advice)


@pytest.mark.django_db
def test_a_row_that_is_over_tells_the_whole_text_and_the_end(generation: Generation):
    assert generation.message is not None
    generation.message.content = "Boats float."
    generation.state, generation.finish_reason = "cancelled", "cancelled"
    text, end = events.of_row(generation).decode().strip().split("\n\n")
    assert read(text.encode())[1:] == ("text", "Boats float.")
    assert read(end.encode())[1:] == (
        "finished",
        {
            "note": "Stopped.",
            "advice": "",
            "advice_without_text": "",
            "look": "stopped",
            "unfinished": True,
        },
    )
