"""A chat as a whole: its place in the list, its name, its settings, its deletion."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from dashboard import chats, housekeeping
from inference.broker.connect import sync_client
from inference.broker.keys import CONTROL, changes
from inference.models import Chat, Generation, Message

pytestmark = pytest.mark.django_db


def listed(html: str) -> list[int]:
    return [int(pk) for pk in re.findall(r'<li data-chat="(\d+)">', html)]


@pytest.fixture
def many(ada, grace) -> list[int]:
    """Ada's chats, newest first, of which some were changed at the same moment; and one of another."""
    made = Chat.objects.bulk_create([Chat(user=ada, title=f"Chat {i}") for i in range(2 * chats.PAGE + 7)])
    now = timezone.now()
    for i, chat in enumerate(made):
        chat.updated_at = now + timedelta(seconds=i // 3)
    Chat.objects.bulk_update(made, ["updated_at"])
    Chat.objects.create(user=grace, title="Hers")
    return [chat.pk for chat in reversed(made)]


def test_the_list_comes_in_pages_and_no_chat_twice_or_never(as_ada, many):
    page = as_ada.get("/")
    found, more = listed(page.text), page.context["more"]
    assert len(found) == chats.PAGE
    while more:
        reply = as_ada.get("/chats/more", {"after": more}).json()
        found, more = found + listed(reply["html"]), reply["more"]
    assert found == many


def test_a_list_that_fits_has_no_more(as_ada, chat):
    assert as_ada.get("/").context["more"] == ""


@pytest.mark.parametrize("after", ["x", "1", "1.x", "1.2.3", f"{10**30}.1", "-1"])
def test_a_place_that_is_none_is_refused(as_ada, chat, after):
    assert as_ada.get("/chats/more", {"after": after}).status_code == 400


def test_a_long_list_costs_as_many_queries_as_a_short_one(as_ada, many, django_assert_max_num_queries):
    with django_assert_max_num_queries(5):  # session, person, chats, those under way, and the page's text
        as_ada.get("/")


def test_an_older_chat_is_listed_first_while_it_is_being_answered(as_ada, many):
    oldest, newest = (Chat.objects.get(pk=pk).add("assistant") for pk in (many[-1], many[0]))
    Generation.objects.create(message=oldest, user=oldest.chat.user, state="parked")
    Generation.objects.create(message=newest, user=newest.chat.user)
    page = as_ada.get("/")
    assert listed(page.text) == [many[-1], *many[: chats.PAGE]]
    more = as_ada.get("/chats/more", {"after": page.context["more"]}).json()
    assert listed(more["html"]) == many[chats.PAGE : 2 * chats.PAGE]
    Generation.objects.update(state="finished")
    assert listed(as_ada.get("/").text) == many[: chats.PAGE]


# --- names ----------------------------------------------------------------------------------------


def test_a_chat_is_renamed_and_keeps_its_place(as_ada, ada, chat):
    Chat.objects.create(user=ada, title="Newer")
    reply = as_ada.post(f"/chats/{chat.pk}/title", {"title": "  Ropes \n and  sails "})
    assert reply.json() == {"title": "Ropes and sails"}
    chat.refresh_from_db()
    assert (chat.title, chat.titled_by) == ("Ropes and sails", Chat.TitledBy.PERSON)
    assert [c.title for c in as_ada.get("/").context["chats"]] == ["Newer", "Ropes and sails"]


@pytest.mark.parametrize(
    ("title", "error"),
    [
        (" ", "Give the chat a name."),
        (" \u200b\u202e", "Give the chat a name."),
        ("x" * 201, "The name is too long: 200 characters at most."),
    ],
)
def test_a_name_that_cannot_be_kept_is_refused(as_ada, chat, title, error):
    reply = as_ada.post(f"/chats/{chat.pk}/title", {"title": title})
    assert (reply.status_code, reply.json()["error"]) == (400, error)
    chat.refresh_from_db()
    assert chat.title == "Boats"


# --- settings -------------------------------------------------------------------------------------

SETTINGS = {
    "system_prompt": "Be brief.",
    "temperature": "0,7",
    "top_p": "0.5",
    "max_tokens": "100",
    "seed": "0",
}
KEPT = {"system_prompt": "Be brief.", "temperature": 0.7, "top_p": 0.5, "max_tokens": 100, "seed": 0}
NONE = {"system_prompt": "", "temperature": None, "top_p": None, "max_tokens": None, "seed": None}


def test_settings_are_kept_and_read_again(as_ada, chat):
    url = f"/chats/{chat.pk}/settings"
    assert as_ada.get(url).json() == NONE
    assert as_ada.post(url, SETTINGS).json() == KEPT
    assert as_ada.get(url).json() == KEPT
    assert as_ada.get(f"/chats/{chat.pk}/").context["settings_form"].is_set


def test_what_is_empty_is_the_servers_again(as_ada, chat):
    url = f"/chats/{chat.pk}/settings"
    as_ada.post(url, SETTINGS)
    assert as_ada.post(url, dict.fromkeys(SETTINGS, "")).json() == NONE
    assert not as_ada.get(f"/chats/{chat.pk}/").context["settings_form"].is_set


BAD = [
    ("temperature", "-0.1", "The temperature is a number from 0 to 2."),
    ("temperature", "2.1", "The temperature is a number from 0 to 2."),
    ("temperature", "warm", "The temperature is a number from 0 to 2."),
    ("temperature", "nan", "The temperature is a number from 0 to 2."),
    ("top_p", "0", "Top P is a number above 0, up to 1."),
    ("top_p", "1.1", "Top P is a number above 0, up to 1."),
    ("max_tokens", "0", "The longest answer is a whole number of tokens from 1 to 1,000,000."),
    ("max_tokens", "1.5", "The longest answer is a whole number of tokens from 1 to 1,000,000."),
    ("seed", "-1", "The seed is a whole number from 0 to 4,294,967,294."),
    ("seed", str(2**32 - 1), "The seed is a whole number from 0 to 4,294,967,294."),
    ("system_prompt", "x" * 20_001, "The system prompt is too long: 20,000 characters at most."),
]


@pytest.mark.parametrize(("name", "value", "error"), BAD)
def test_a_setting_out_of_its_bounds_is_refused_and_none_is_kept(as_ada, chat, name, value, error):
    for url in (f"/chats/{chat.pk}/settings", "/chats/settings"):
        reply = as_ada.post(url, {**SETTINGS, name: value})
        assert reply.status_code == 400
        assert reply.json() == {"error": error, "fields": {name: error}}
    assert as_ada.get(f"/chats/{chat.pk}/settings").json() == NONE


def test_a_chat_can_begin_with_settings(as_ada, ada):
    assert as_ada.post("/chats/settings", SETTINGS).json() == KEPT
    assert as_ada.post("/chats/", {"text": "Hello", **SETTINGS}).status_code == 201
    chat = Chat.objects.get(user=ada)
    assert {name: getattr(chat, name) for name in KEPT} == KEPT


def test_a_chat_does_not_begin_with_settings_that_cannot_be_kept(as_ada):
    reply = as_ada.post("/chats/", {"text": "Hello", "temperature": "9"})
    assert (reply.status_code, reply.json()["error"]) == (400, "The temperature is a number from 0 to 2.")
    assert not Chat.objects.exists()


# --- deletion -------------------------------------------------------------------------------------


def test_a_deleted_chat_is_gone_and_can_be_had_back(as_ada, ada, chat):
    Chat.objects.create(user=ada, title="Newer")
    before = Chat.objects.get(pk=chat.pk).updated_at
    assert as_ada.post(f"/chats/{chat.pk}/delete").json() == {"title": "Boats"}
    assert [c.title for c in as_ada.get("/").context["chats"]] == ["Newer"]
    assert as_ada.get(f"/chats/{chat.pk}/").status_code == 404
    reply = as_ada.post(f"/chats/{chat.pk}/restore").json()
    assert (reply["url"], listed(reply["html"])) == (f"/chats/{chat.pk}/", [chat.pk])
    assert [c.title for c in as_ada.get("/").context["chats"]] == ["Newer", "Boats"]
    assert Chat.objects.get(pk=chat.pk).updated_at == before


def test_deleting_a_chat_stops_its_answer(as_ada, chat, generation):
    assert as_ada.post(f"/chats/{chat.pk}/delete").status_code == 200
    found: Any = sync_client().xrange(CONTROL)
    [(_, command)] = found
    assert (command[b"kind"], command[b"id"]) == (b"cancel", generation.id.hex.encode())


def test_a_chat_whose_answer_cannot_be_stopped_is_not_deleted(as_ada, chat, generation, redis_away):
    reply = as_ada.post(f"/chats/{chat.pk}/delete")
    assert reply.status_code == 503
    assert reply.json()["error"].endswith("Try again in a moment.")
    chat.refresh_from_db()
    assert chat.deleted_at is None


def test_a_deleted_chat_is_purged_after_a_week_and_others_are_not(ada, generation, chat):
    Chat.objects.filter(pk=chat.pk).update(deleted_at=timezone.now() - housekeeping.KEPT)
    late = Chat.objects.create(user=ada, deleted_at=timezone.now() - housekeeping.KEPT + timedelta(minutes=1))
    kept = Chat.objects.create(user=ada)
    housekeeping.purge()
    assert set(Chat.objects.all()) == {late, kept}
    assert not Message.objects.exists()
    assert Generation.objects.get().message is None  # that it was asked for is still counted


def test_however_many_are_due_they_go_in_small_transactions(ada):
    due = timezone.now() - 2 * housekeeping.KEPT
    n = 2 * housekeeping.BATCH
    Chat.objects.bulk_create([Chat(user=ada, deleted_at=due) for _ in range(n + 1)])
    assert housekeeping.purge_some() == housekeeping.BATCH
    pauses: list[float] = []
    housekeeping.purge(pauses.append)
    assert not Chat.objects.exists()
    assert len(pauses) == 1


# --- other tabs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "fields"),
    [("title", {"title": "Ropes"}), ("settings", SETTINGS), ("delete", {}), ("restore", {})],
)
def test_the_persons_other_pages_are_told(what, fields, client, transactional_db, ada, chat):
    client.force_login(ada)
    client.post(f"/chats/{chat.pk}/{what}", fields)
    found: Any = sync_client().xrange(changes(ada.pk))
    [(_, told)] = found
    assert told == {b"chat": str(chat.pk).encode()}
