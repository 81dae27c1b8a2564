"""An answer that was stopped, cut off or failed can be continued, in its place."""

from __future__ import annotations

import pytest

from inference.broker.connect import sync_client
from inference.broker.keys import IN_FLIGHT, JOBS

from .play import add, end, post, read
from .test_send import last_job

pytestmark = pytest.mark.django_db

UNFINISHED = [
    {"state": "cancelled", "finish_reason": "cancelled"},
    {"state": "failed", "error": "the worker died"},
    {"state": "finished", "finish_reason": "length", "completion_tokens": 9, "max_tokens": 9},
]
NO_MORE = [
    {"state": "finished", "finish_reason": "stop"},
    {"state": "finished", "finish_reason": "length", "completion_tokens": 9},
    {"state": "failed", "error": "it exceeds the available context size"},
]


@pytest.mark.parametrize("row", UNFINISHED)
def test_an_unfinished_answer_goes_on_with_its_own_text(as_ada, chat, row):
    add(chat, "user", "One")
    answer = add(chat, "assistant", "Boats fl", **row)
    assert "data-unfinished" in as_ada.get(f"/chats/{chat.pk}/").text
    reply = post(as_ada, answer, "continue")
    assert reply.status_code == 201
    assert last_job().body["messages"][-1] == {"role": "assistant", "content": "Boats fl"}
    assert "Boats fl" in reply.json()["html"]  # which the stream adds to
    assert "Boats fl" in as_ada.get(f"/chats/{chat.pk}/").text  # also after a reload
    end(chat, "oat.")
    assert read(chat) == ["One", "Boats float."]
    assert chat.messages.count() == 2


@pytest.mark.parametrize("row", NO_MORE)
def test_a_complete_answer_does_not_go_on(as_ada, chat, row):
    add(chat, "user", "One")
    answer = add(chat, "assistant", "Boats float.", **row)
    assert "data-unfinished" not in as_ada.get(f"/chats/{chat.pk}/").text
    reply = post(as_ada, answer, "continue")
    assert (reply.status_code, "can't be continued" in reply.json()["error"]) == (409, True)
    assert not sync_client().exists(JOBS, IN_FLIGHT)


def test_an_answer_that_has_been_answered_does_not_go_on(as_ada, chat):
    add(chat, "user", "One")
    answer = add(chat, "assistant", "Boats fl", state="cancelled")
    add(chat, "user", "Two")
    assert post(as_ada, answer, "continue").status_code == 409


def test_what_others_are_shown_by_a_link_stays_as_it_is(as_ada, chat):
    add(chat, "user", "One")
    answer = add(chat, "assistant", "Boats fl", state="cancelled")
    chat.shares.create(leaf=answer)
    post(as_ada, answer, "continue")
    end(chat, "oat.")
    assert read(chat) == ["One", "Boats float."]
    answer.refresh_from_db()
    assert answer.content == "Boats fl"


def test_what_was_written_stays_when_it_cannot_go_on(as_ada, chat, redis_away):
    add(chat, "user", "One")
    answer = add(chat, "assistant", "Boats fl", state="cancelled")
    reply = post(as_ada, answer, "continue")
    assert reply.status_code == 201
    assert "The model can&#x27;t be reached" in reply.json()["html"]
    assert read(chat) == ["One", "Boats fl"]
