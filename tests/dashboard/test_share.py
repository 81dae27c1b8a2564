"""Links to a chat, for readers without an account."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from dashboard import share
from inference.models import Chat, Generation, Message, Share

pytestmark = pytest.mark.django_db


@pytest.fixture
def told(chat: Chat) -> Chat:
    chat.add("user", "What floats?")
    chat.add("assistant", "**Boats** float.")
    return chat


@pytest.fixture
def link(as_ada, told) -> str:
    [made] = as_ada.post(f"/chats/{told.pk}/shares").json()["links"]
    url: str = made["url"]
    assert url.startswith("http://testserver/s/")
    return url


@pytest.fixture
def anybody(link) -> Client:
    return Client()


def test_a_link_shows_the_chat_as_it_was_to_anybody(anybody, link, told):
    told.add("user", "A secret, later")
    page = anybody.get(link)
    assert page.status_code == 200
    assert "What floats?" in page.text
    assert "**Boats** float." in page.text
    assert "A secret, later" not in page.text


def test_another_version_that_is_read_later_is_not_shown(anybody, link, told):
    told.add("assistant", "Corks float.", after=told.messages.get(role="user"))
    assert "**Boats** float." in anybody.get(link).text
    assert "Corks" not in anybody.get(link).text


def test_the_page_names_nobody_and_is_kept_and_told_nowhere(anybody, link):
    page = anybody.get(link)
    assert "ada" not in page.text.replace("data-", "")
    assert page["Referrer-Policy"] == "no-referrer"
    assert page["X-Robots-Tag"] == "noindex, nofollow"
    assert page["Cache-Control"] == "private, no-store"
    assert '<meta name="robots" content="noindex, nofollow">' in page.text


def test_who_looks_whether_a_link_opens_is_told(anybody, link):
    assert anybody.head(link).status_code == 200


def test_its_owner_and_others_see_the_same(as_ada, grace, anybody, link):
    page = as_ada.get(link).text
    assert "grace" not in page
    assert "Sign out" not in page
    assert anybody.get(link).text.count("<article") == page.count("<article") == 2


def test_a_link_that_was_taken_back_opens_nothing(as_ada, anybody, link, told):
    [listed] = as_ada.get(f"/chats/{told.pk}/shares").json()["links"]
    assert listed["url"] == link
    assert as_ada.post(listed["revoke"]).json() == {"links": []}
    assert anybody.get(link).status_code == 404
    first = Share.objects.get().revoked_at
    as_ada.post(listed["revoke"])
    assert Share.objects.get().revoked_at == first


def test_links_to_a_deleted_chat_open_nothing_until_it_is_had_back(as_ada, anybody, link, told):
    as_ada.post(f"/chats/{told.pk}/delete")
    assert anybody.get(link).status_code == 404
    as_ada.post(f"/chats/{told.pk}/restore")
    assert anybody.get(link).status_code == 200


def test_links_of_a_person_who_is_shut_out_open_nothing(anybody, link, ada):
    ada.is_active = False
    ada.save()
    assert anybody.get(link).status_code == 404


@pytest.mark.parametrize("token", ["x", "x" * 43, "..", "%00"])
def test_a_token_that_is_none_opens_nothing(anybody, token):
    assert anybody.get(f"/s/{token}/").status_code == 404


def test_tokens_cannot_be_guessed(as_ada, told, link):
    as_ada.post(f"/chats/{told.pk}/shares")
    tokens = set(Share.objects.values_list("token", flat=True))
    assert len(tokens) == 2
    assert all(len(token) == 43 for token in tokens)  # 32 random bytes


def test_an_empty_chat_and_an_answer_on_its_way_are_not_shared(as_ada, chat):
    url = f"/chats/{chat.pk}/shares"
    assert as_ada.post(url).json() == {"error": "There is nothing to share yet."}
    chat.add("user", "Tell me of boats")
    Generation.objects.create(message=chat.add("assistant"), user=chat.user)
    reply = as_ada.post(url)
    assert reply.status_code == 409
    assert reply.json()["error"].startswith("The answer is still being written.")
    assert not Share.objects.exists()


def test_a_chat_has_so_many_links_at_most(as_ada, told):
    for _ in range(share.MOST):
        assert as_ada.post(f"/chats/{told.pk}/shares").status_code == 200
    assert as_ada.post(f"/chats/{told.pk}/shares").status_code == 409
    Share.objects.update(revoked_at="2026-01-01T00:00Z")
    assert as_ada.post(f"/chats/{told.pk}/shares").status_code == 200


def test_a_link_takes_no_post(anybody, link):
    assert anybody.post(link).status_code == 405
    assert reverse("shared", args=["x"]) == "/s/x/"


def test_an_answer_without_a_word_that_others_are_shown_is_written_anew_beside_it(as_ada, ada, chat):
    chat.add("user", "What floats?")
    empty = chat.add("assistant")
    Generation.objects.create(message=empty, user=ada, state="failed", error="no room")
    [made] = as_ada.post(f"/chats/{chat.pk}/shares").json()["links"]
    assert as_ada.post(f"/messages/{empty.pk}/regenerate").status_code == 201
    Message.objects.filter(generations__state="queued").update(content="Corks, in secret")
    assert "in secret" not in Client().get(made["url"]).text
