"""Search over one's chats."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from dashboard import search
from inference.models import Chat

pytestmark = pytest.mark.django_db


def look(client: Client, term: str, **more: Any) -> list[dict[str, Any]]:
    reply = client.get("/chats/search", {"q": term, **more})
    assert reply.status_code == 200
    hits: list[dict[str, Any]] = reply.json()["hits"]
    return hits


def test_titles_and_messages_are_found_whatever_their_capital_letters(as_ada, chat):
    question = chat.add("user", "What is a\n  HALYARD made of?")
    answer = chat.add("assistant", "A halyard is a rope.")
    Chat.objects.create(user=chat.user, title="The Halyard")
    found = look(as_ada, "haLyard")
    assert [hit["url"] for hit in found] == [
        f"/chats/{chat.pk + 1}/",
        f"/chats/{chat.pk}/#message-{answer.pk}",
        f"/chats/{chat.pk}/#message-{question.pk}",
    ]
    assert found[0]["title"] == ["The ", "Halyard", ""]
    assert (found[1]["chat"], found[1]["role"]) == ("Boats", "assistant")
    assert found[2]["text"] == ["What is a ", "HALYARD", " made of?"]


@pytest.mark.parametrize("term", ["größe", "GRÖSSE", "ÜBER"])
def test_letters_beyond_ascii_have_capitals_too(as_ada, chat, term):
    chat.add("user", "Größe und GRÖSSE, über und Über")
    [hit] = look(as_ada, term)
    assert hit["text"][1].lower() == term.lower()


@pytest.mark.parametrize("term", ["100%", "a_b", "c\\d", "'; --"])
def test_what_means_something_to_a_database_is_taken_by_the_letter(as_ada, chat, term):
    chat.add("user", f"This is {term}.")
    chat.add("assistant", "100 percent, aXb, cXd")
    [hit] = look(as_ada, term)
    assert hit["text"] == ["This is ", term, "."]


def test_a_snippet_is_the_surroundings_of_the_hit(as_ada, chat):
    chat.add("user", "before " * 500 + "halyard" + " after" * 500)
    [hit] = look(as_ada, "halyard")
    before, term, after = hit["text"]
    assert term == "halyard"
    assert before.startswith("…before")
    assert after.endswith("after…")
    assert len(before) + len(after) <= 2 * search.AROUND + 2


def test_only_ones_own_chats_that_are_there_are_searched(as_ada, ada, grace, chat):
    for user, title in ((grace, "hers"), (ada, "deleted")):
        other = Chat.objects.create(user=user, title=f"halyard {title}")
        other.add("user", "halyard")
    as_ada.post(f"/chats/{other.pk}/delete")
    assert look(as_ada, "halyard") == []


@pytest.mark.parametrize("term", ["", "h", " h ", "\0\0h"])
def test_a_term_of_less_than_two_characters_is_refused(as_ada, term):
    reply = as_ada.get("/chats/search", {"q": term})
    assert (reply.status_code, reply.json()) == (400, {"error": "Type two characters or more."})


def test_a_place_beyond_the_end_has_nothing_after_it(as_ada, chat):
    for after in (10**6, 10**30):
        assert as_ada.get("/chats/search", {"q": "boats", "after": after}).json() == {"hits": [], "more": ""}


def test_hits_come_in_bounded_portions_until_all_have_come(as_ada, ada):
    for i in range(search.MOST + 7):
        Chat.objects.create(user=ada, title=f"Halyard {i}")
    first = as_ada.get("/chats/search", {"q": "halyard"}).json()
    assert len(first["hits"]) == search.MOST
    rest = as_ada.get("/chats/search", {"q": "halyard", "after": first["more"]}).json()
    assert rest["more"] == ""
    titles = ["".join(hit["title"]) for hit in first["hits"] + rest["hits"]]
    assert titles == [f"Halyard {i}" for i in reversed(range(search.MOST + 7))]


def test_no_chat_hides_the_others(as_ada, ada, chat):
    Chat.objects.create(user=ada, title="Older").add("user", "halyard")
    for _ in range(20):
        chat.add("user", "halyard")
    chat.save()
    chats = [hit["chat"] for hit in look(as_ada, "halyard")]
    assert chats == ["Boats"] * search.OF_A_CHAT + ["Older"]


def test_a_search_that_takes_long_answers_with_what_it_has(as_ada, ada, monkeypatch):
    monkeypatch.setattr(search, "ENOUGH_S", -1.0)
    monkeypatch.setattr(search, "BATCH", 2)
    for i in range(5):
        Chat.objects.create(user=ada, title=f"Halyard {i}")
    n, after = 0, ""
    for _ in range(3):
        reply = as_ada.get("/chats/search", {"q": "halyard", "after": after}).json()
        n, after = n + len(reply["hits"]), reply["more"]
    assert n == 5
    assert after == ""
