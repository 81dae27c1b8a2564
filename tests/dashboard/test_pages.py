from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User

from inference.models import Chat, Generation

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/", "/chats/1/", "/monitor/"])
def test_pages_ask_an_unknown_person_to_sign_in(client, path):
    reply = client.get(path)
    assert reply.status_code == 302
    assert reply.url == f"/accounts/login/?next={path}"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/monitor/",
        "/account/",
        "/account/export/",
        "/chats/more",
        "/offline/",
        "/sw.js",
        "/accounts/reset/",
    ],
)
def test_what_can_be_read_can_be_asked_for_without_its_body(client, staff, path):
    client.force_login(staff)
    assert client.head(path).status_code == client.get(path).status_code == 200


def test_nothing_is_sent_before_the_scripts_are_there_to_send_it(as_ada):
    assert 'id="send" disabled>' in as_ada.get("/").text  # or the browser would show the JSON of the answer


def test_a_browser_keeps_no_chat_for_who_uses_it_next(as_ada, chat):
    for path in ("/", f"/chats/{chat.pk}/", f"/chats/{chat.pk}/chat.md"):
        assert "no-store" in as_ada.get(path)["Cache-Control"]


def test_the_scripts_words_are_sent_again_only_in_another_language(client):
    german = client.get("/words.js", headers={"accept-language": "de"})
    for language, status in (("de", 304), ("en", 200)):
        headers = {"accept-language": language, "if-none-match": german["ETag"]}
        assert client.get("/words.js", headers=headers).status_code == status


def test_the_sign_in_page_says_when_the_password_is_wrong(client, ada):
    reply = client.post("/accounts/login/", {"username": "ada", "password": "wrong"})
    assert b"match an account" in reply.content


def test_signing_in_leads_to_the_chat(client):
    User.objects.create_user("ada", password="correct-horse")
    reply = client.post("/accounts/login/", {"username": "ada", "password": "correct-horse"})
    assert reply.status_code == 302
    assert reply.url == "/"


def test_signing_out_leads_to_the_sign_in_page(as_ada):
    reply = as_ada.post("/accounts/logout/")
    assert reply.url == "/accounts/login/"
    assert as_ada.get("/").status_code == 302


def test_only_ones_own_chats_are_listed_newest_first(as_ada, ada, grace):
    for user, title in ((ada, "Older"), (grace, "Hers"), (ada, "Newer")):
        Chat.objects.create(user=user, title=title)
    assert [chat.title for chat in as_ada.get("/").context["chats"]] == ["Newer", "Older"]


def test_anothers_chat_is_not_found(as_ada, grace):
    chat = Chat.objects.create(user=grace, title="Hers")
    reply = as_ada.get(f"/chats/{chat.pk}/", headers={"Accept": "text/html"})
    assert reply.status_code == 404
    assert b"Nothing here" in reply.content
    assert b"Hers" not in reply.content


def test_a_number_too_large_for_the_database_is_not_found(as_ada):
    assert as_ada.get(f"/chats/{10**30}/").status_code == 404


def test_text_is_escaped_and_kept_as_it_was_written(as_ada, chat):
    chat.add("user", "<script>alert(1)</script>\n  indented")
    page = as_ada.get(f"/chats/{chat.pk}/").content.decode()
    assert '<div class="text">&lt;script&gt;alert(1)&lt;/script&gt;\n  indented</div>' in page


def test_an_answer_on_its_way_carries_the_address_of_its_events(as_ada, chat, generation):
    page = as_ada.get(f"/chats/{chat.pk}/").content.decode()
    assert f'data-events="/generations/{generation.pk}/events"' in page
    assert f'data-stop="/generations/{generation.pk}/stop"' in page


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ({"state": "cancelled", "finish_reason": "cancelled"}, "Stopped."),
        ({"state": "finished", "finish_reason": "length"}, "Start a new chat to go on."),
        ({"state": "failed", "error": "it exceeds the available context size"}, "Shorten your message"),
        ({"state": "failed", "error": "the cable broke"}, "No more of this answer: the cable broke."),
        ({"state": "failed", "error": ""}, "“Regenerate” tries again."),
    ],
)
def test_an_answer_that_is_over_says_how_it_ended(as_ada, chat, generation, row, line):
    Generation.objects.filter(pk=generation.pk).update(**row)
    page = as_ada.get(f"/chats/{chat.pk}/").content.decode()
    assert line in page
    assert "data-events" not in page


@pytest.mark.parametrize("path", ["/", "/monitor/", "/accounts/login/", "/nowhere"])
def test_pages_hold_no_inline_script_or_style(client, staff, path):
    if path != "/accounts/login/":
        client.force_login(staff)
    page = client.get(path).content.decode()
    assert "<style" not in page
    assert "style=" not in page
    assert not re.search(r"\son[a-z]+=", page)
    assert page.count("<script") == len(re.findall(r'<script (type="module" )?src="[^"]+"></script>', page))


def test_the_monitor_is_for_staff_alone(as_ada):
    reply = as_ada.get("/monitor/", headers={"Accept": "text/html"})
    assert reply.status_code == 403
    assert b"This page is for staff" in reply.content


def test_staff_see_the_monitor_and_the_ways_to_it(client, staff):
    client.force_login(staff)
    page = client.get("/monitor/")
    assert page.status_code == 200
    assert b'href="/admin/"' in page.content


def test_others_see_no_way_to_the_monitor(as_ada):
    assert b"/monitor/" not in as_ada.get("/").content
