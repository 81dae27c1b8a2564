"""What is done with the turns of a chat: the tree that comes of it, and what the model is asked."""

from __future__ import annotations

import threading

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from dashboard.thread import thread
from inference import limits
from inference.broker.connect import sync_client
from inference.broker.keys import IN_FLIGHT, JOBS
from inference.models import Chat, Generation, Message, UserLimits

from .play import add, asked, end, post, read
from .test_send import last_job

pytestmark = pytest.mark.django_db


@pytest.fixture
def talk(chat: Chat) -> list[Message]:
    """Two questions with their answers."""
    turns = [("user", "One"), ("assistant", "First"), ("user", "Two"), ("assistant", "Second")]
    return [add(chat, role, content) for role, content in turns]


# --- regenerate -------------------------------------------------------------------------------------


def test_regenerating_asks_again_and_keeps_the_earlier_answer(as_ada, chat, talk):
    reply = post(as_ada, talk[3], "regenerate")
    assert (reply.status_code, reply.json()["after"]) == (201, talk[2].pk)
    assert asked() == ["One", "First", "Two"]
    end(chat, "Another")
    assert read(chat) == ["One", "First", "Two", "Another"]
    assert [(m.version, m.versions, m.previous) for m in thread(chat)][-1] == (2, 2, talk[3].pk)
    talk[3].refresh_from_db()
    assert talk[3].content == "Second"


def test_regenerating_in_the_middle_leaves_what_followed_with_the_earlier_answer(as_ada, chat, talk):
    post(as_ada, talk[1], "regenerate")
    assert asked() == ["One"]
    end(chat, "Another")
    assert read(chat) == ["One", "Another"]
    post(as_ada, talk[1], "show")
    assert read(chat) == ["One", "First", "Two", "Second"]


def test_an_answer_of_which_nothing_was_written_is_written_in_its_place(as_ada, chat):
    add(chat, "user", "One")
    empty = add(chat, "assistant", "", state="failed", error="it broke")
    post(as_ada, empty, "regenerate")
    end(chat, "First")
    assert read(chat) == ["One", "First"]
    assert chat.messages.count() == 2


def test_what_follows_an_empty_answer_can_still_be_found(as_ada, chat):
    add(chat, "user", "One")
    empty = add(chat, "assistant", "", state="failed")
    add(chat, "user", "Two")
    post(as_ada, empty, "regenerate")
    end(chat, "First")
    assert read(chat) == ["One", "First"]
    post(as_ada, empty, "show")
    assert read(chat) == ["One", "", "Two"]


# --- edit -------------------------------------------------------------------------------------------


def test_an_edited_message_is_a_branch_and_the_former_one_stays(as_ada, chat, talk):
    reply = post(as_ada, talk[2], "edit", text="Three")
    assert (reply.status_code, reply.json()["after"]) == (201, talk[1].pk)
    assert asked() == ["One", "First", "Three"]
    end(chat, "Third")
    assert read(chat) == ["One", "First", "Three", "Third"]
    post(as_ada, talk[2], "show")
    assert read(chat) == ["One", "First", "Two", "Second"]


def test_the_first_message_can_be_edited_too(as_ada, chat, talk):
    assert post(as_ada, talk[0], "edit", text="Zero").json()["after"] is None
    assert asked() == ["Zero"]
    end(chat, "Nought")
    assert read(chat) == ["Zero", "Nought"]
    assert thread(chat)[0].previous == talk[0].pk
    post(as_ada, talk[0], "show")
    assert read(chat) == ["One", "First", "Two", "Second"]


@pytest.mark.parametrize(("text", "error"), [(" ", "Write a message first."), ("x" * 100_001, "too long")])
def test_an_edit_that_cannot_be_kept_changes_nothing(as_ada, chat, talk, text, error):
    reply = post(as_ada, talk[2], "edit", text=text)
    assert reply.status_code == 400
    assert error in reply.json()["error"]
    assert read(chat) == ["One", "First", "Two", "Second"]
    assert chat.messages.count() == 4


def test_only_questions_are_edited_and_only_answers_written_again(as_ada, chat, talk):
    assert post(as_ada, talk[1], "edit", text="x").status_code == 404
    assert post(as_ada, talk[0], "regenerate").status_code == 404
    assert post(as_ada, talk[0], "continue").status_code == 404


# --- versions ---------------------------------------------------------------------------------------


def test_another_version_leads_to_where_one_last_read_below_it(as_ada, chat, talk):
    """Not to the newest: below the first question are two branches, of which the older was read last."""
    post(as_ada, talk[2], "edit", text="Three")
    end(chat, "Third")
    post(as_ada, talk[2], "show")
    post(as_ada, talk[0], "edit", text="Zero")
    end(chat, "Nought")
    post(as_ada, talk[0], "show")
    assert read(chat) == ["One", "First", "Two", "Second"]


def test_a_shown_version_says_what_makes_way_for_it(as_ada, chat, talk):
    post(as_ada, talk[3], "regenerate")
    end(chat, "Another")
    reply = post(as_ada, talk[3], "show")
    assert (reply.status_code, reply.json()["after"]) == (200, talk[2].pk)
    assert "Second" in reply.json()["html"]
    assert "Version 1 of 2" in reply.json()["html"]


def test_reading_another_version_does_not_lift_the_chat(as_ada, chat, talk):
    before = Chat.objects.get(pk=chat.pk).updated_at
    post(as_ada, talk[1], "show")
    assert Chat.objects.get(pk=chat.pk).updated_at == before


def test_a_message_follows_what_its_writer_has_seen(as_ada, chat, talk):
    """Another tab has switched the version meanwhile."""
    post(as_ada, talk[3], "regenerate")
    end(chat, "Another")
    as_ada.post(f"/chats/{chat.pk}/messages", {"text": "Three", "after": talk[3].pk})
    assert asked() == ["One", "First", "Two", "Second", "Three"]
    assert read(chat)[:5] == asked()


def test_a_message_cannot_follow_one_of_another_chat(as_ada, ada, chat, talk):
    other = Chat.objects.create(user=ada)
    reply = as_ada.post(f"/chats/{other.pk}/messages", {"text": "x", "after": talk[3].pk})
    assert reply.status_code == 404
    assert not other.messages.exists()


# --- all of them ------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["regenerate", "edit", "continue"])
def test_one_answer_is_on_its_way_at_a_time(as_ada, chat, talk, generation, what):
    message = talk[2] if what == "edit" else talk[3]
    before = chat.messages.count()
    reply = post(as_ada, message, what, text="x")
    assert (reply.status_code, "still being answered" in reply.json()["error"]) == (409, True)
    assert chat.messages.count() == before
    assert not sync_client().exists(JOBS, IN_FLIGHT)


@pytest.mark.parametrize("what", ["regenerate", "edit", "continue"])
def test_limits_hold_for_all(as_ada, ada, chat, what):
    UserLimits.objects.create(user=ada, max_concurrent=1)
    as_ada.post("/chats/", {"text": "Elsewhere"})
    question = add(chat, "user", "One")
    answer = add(chat, "assistant", "First", state="cancelled")
    fields = {"text": "x"} if what == "edit" else {}
    reply = post(as_ada, question if what == "edit" else answer, what, **fields)
    assert (reply.status_code, reply["Retry-After"]) == (429, "2")
    assert reply.json()["error"].endswith("Your text is still here.") is (what == "edit")
    assert read(chat) == ["One", "First"]
    assert chat.messages.count() == 2


@pytest.mark.parametrize("what", ["regenerate", "edit", "continue", "show"])
def test_a_deleted_chat_is_not_there(as_ada, chat, talk, what):
    Chat.objects.update(deleted_at=chat.created_at)
    message = talk[2] if what == "edit" else talk[3]
    assert post(as_ada, message, what, text="x").status_code == 404


@pytest.mark.parametrize("what", ["regenerate", "edit", "continue"])
def test_no_answer_begins_in_a_chat_that_is_deleted_at_that_moment(as_ada, chat, monkeypatch, what):
    question = add(chat, "user", "One")
    answer = add(chat, "assistant", "Fir", state="cancelled")
    row = Chat.objects.filter(pk=chat.pk)
    monkeypatch.setattr(limits, "admit_one_sync", lambda id, user: row.update(deleted_at=timezone.now()))
    reply = post(as_ada, question if what == "edit" else answer, what, text="Uno")
    assert reply.status_code == 404
    assert not Generation.objects.filter(state="queued").exists()
    assert chat.messages.count() == 2


def test_another_version_can_be_read_while_one_is_written(as_ada, chat, talk):
    post(as_ada, talk[3], "regenerate")
    post(as_ada, talk[3], "show")
    assert read(chat)[-1] == "Second"
    end(chat, "Another")
    assert thread(chat)[-1].following == Message.objects.get(content="Another").pk


@pytest.mark.django_db(transaction=True)
def test_of_two_tabs_that_regenerate_at_once_one_is_told_to_wait(ada, chat, talk):
    start, got = threading.Barrier(2), []

    def tab() -> None:
        client = Client()
        client.force_login(ada)
        start.wait()
        got.append(post(client, talk[3], "regenerate").status_code)
        connections.close_all()

    threads = [threading.Thread(target=tab) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(got) == [201, 409]
    assert Message.objects.filter(parent=talk[2]).count() == 2


# --- settings ---------------------------------------------------------------------------------------


def test_a_chats_settings_are_asked_for(as_ada, chat, talk, settings):
    settings.BERTH = settings.BERTH.__class__(n_predict=50)
    Chat.objects.update(system_prompt="Be brief.", temperature=0.0, top_p=0.5, max_tokens=20, seed=7)
    as_ada.post(f"/chats/{chat.pk}/messages", {"text": "Three"})
    body = last_job().body
    assert body["messages"][0] == {"role": "system", "content": "Be brief."}
    assert asked() == ["Be brief.", "One", "First", "Two", "Second", "Three"]
    sampling = body["sampling"]
    assert (sampling["temperature"], sampling["top_p"], sampling["seed"]) == (0.0, 0.5, 7)
    assert body["max_tokens"] == Generation.objects.latest("created_at").max_tokens == 20


def test_a_chat_asks_for_no_longer_answers_than_the_server_gives(as_ada, chat, settings):
    settings.BERTH = settings.BERTH.__class__(n_predict=50)
    Chat.objects.update(max_tokens=1000)
    as_ada.post(f"/chats/{chat.pk}/messages", {"text": "One"})
    assert last_job().body["max_tokens"] == 50


def test_versions_of_an_answer_have_seeds_of_their_own(as_ada, chat, talk):
    Chat.objects.update(seed=7)
    for version in (1, 2):
        post(as_ada, talk[3], "regenerate")
        assert last_job().body["sampling"]["seed"] == 7 + version
        end(chat, "Another")


def test_an_answer_that_is_as_long_as_its_chat_allows_is_cut_off_and_can_go_on(as_ada, chat):
    add(chat, "user", "One")
    row = {"finish_reason": "length", "completion_tokens": 20, "max_tokens": 20}
    add(chat, "assistant", "Boats fl", **row)
    page = as_ada.get(f"/chats/{chat.pk}/").text
    assert "Cut off at the limit of 20 tokens." in page
    assert "“Continue” goes on from here." in page
