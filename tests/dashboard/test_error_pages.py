"""Errors as pages: in the product's look, with its headers, and for people alone."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import OperationalError
from django.template.loader import render_to_string
from django.test import Client, RequestFactory

from dashboard import views
from dashboard.errors import ErrorPages

HTML: Any = {"headers": {"Accept": "text/html,*/*"}}
AGAIN = ["429", "500", "503", "offline"]  # what may be better in a moment
PROGRAM: Any = {"headers": {"Accept": "application/json"}}
ALL = ["400", "403", "403_csrf", "404", "405", "413", "429", "500", "503", "offline"]


@pytest.mark.parametrize("name", ALL)
def test_a_page_needs_nothing_but_itself_and_has_a_way_out(name):
    page = render_to_string(f"{name}.html")
    assert "dashboard/app.css" in page
    assert len(re.findall(r"<h1>[^<]+</h1>", page)) == 1
    assert re.search(r'class="button[^"]*" href=', page)
    assert ("Try again</a>" in page) == (name in AGAIN)
    assert "style=" not in page


def test_a_page_that_is_not_there(as_ada):
    reply = as_ada.get("/nothing", **HTML)
    assert reply.status_code == 404
    assert "Nothing here" in reply.text


def test_a_form_that_is_out_of_date(ada):
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    reply = client.post("/accounts/logout/", **HTML)
    assert reply.status_code == 403
    assert "out of date" in reply.text


def test_an_address_that_is_no_page(as_ada):
    reply = as_ada.get("/chats/", **HTML)
    assert (reply.status_code, reply["Allow"]) == (405, "POST")
    assert "This isn&#x27;t a page" in reply.text or "This isn't a page" in reply.text


def test_a_program_gets_no_page_but_the_error_of_the_api(as_ada, monkeypatch):
    reply = as_ada.get("/chats/", **PROGRAM)
    assert (reply.status_code, reply["Allow"]) == (405, "POST")
    assert reply.json()["error"]["message"] == "GET is not allowed here; use POST."
    monkeypatch.setattr(views, "render", lambda *args, **kwargs: 1 / 0)
    as_ada.raise_request_exception = False
    for path, status in [("/nothing", 404), ("/chats/999/", 404), ("/monitor/", 403), ("/", 500)]:
        reply = as_ada.get(path, **PROGRAM)
        assert (reply.status_code, reply["Content-Type"]) == (status, "application/json")
        assert reply.json()["error"].keys() == {"message", "type", "param", "code"}
    reply = as_ada.get("/", headers={"Host": "evil.test"})
    assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")


def test_a_program_that_posts_to_a_page_hears_where_to_post():
    reply = Client(enforce_csrf_checks=True).post("/", {}, "application/json", **PROGRAM)
    assert reply.status_code == 403
    assert "/openapi.json" in reply.json()["error"]["message"]


@pytest.mark.parametrize("status", [405, 413, 429, 503])
def test_a_bare_error_gets_its_page_and_keeps_when_to_come_again(status):
    from django.http import HttpResponse

    bare = HttpResponse(status=status, headers={"Retry-After": "7"})
    request = RequestFactory().get("/", **HTML)
    reply: Any = ErrorPages(lambda request: bare)(request)
    assert (reply.status_code, reply["Retry-After"]) == (status, "7")
    assert "<h1>" in reply.content.decode()


def test_an_answer_that_has_words_of_its_own_stays():
    from django.http import JsonResponse

    said = JsonResponse({"error": "Too many."}, status=429)
    assert ErrorPages(lambda request: said)(RequestFactory().get("/", **HTML)) is said


@pytest.mark.parametrize(("error", "status"), [(ValueError, 500), (OperationalError, 503)])
def test_what_breaks_is_told_apart_from_what_is_away(error, status, as_ada, monkeypatch):
    def broken(*args, **kwargs):
        raise error("x")

    monkeypatch.setattr(views, "render", broken)
    as_ada.raise_request_exception = False
    reply = as_ada.get("/", **HTML)
    assert reply.status_code == status
    assert "<h1>" in reply.text


def test_the_worker_of_the_offline_page_names_what_it_keeps_and_the_page_is_the_same_for_all(client, as_ada):
    script = as_ada.get("/sw.js")
    assert script["Content-Type"].startswith("text/javascript")
    kept = re.search(r"KEPT = \[PAGE, (.*)\]", script.text)
    assert kept
    assert re.findall(r'"/static/(.+?)"', kept[1])[0] == "dashboard/app.css"
    page = as_ada.get("/offline/").text
    assert "ada" not in page
    client.logout()
    assert client.get("/offline/").text == page


def test_the_worker_of_the_offline_page_is_another_for_each_language_and_no_other_for_whoever_asked_first(
    client,
):
    def worker(language: str) -> str:
        return str(client.get("/sw.js", headers={"accept-language": language}).text)

    english, german = worker("en"), worker("de")
    assert english != german
    assert (worker("en"), worker("de")) == (english, german)
