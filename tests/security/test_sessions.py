"""Writes by session need the page's token, and a session ends with its person."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser
from django.urls import URLPattern, get_resolver, reverse

from dashboard import urls as dashboard
from inference.broker.connect import sync_client
from inference.broker.keys import CONTROL, JOBS
from inference.models import ApiKey, Chat

WRITES = (
    "chats",
    "send",
    "stop",
    "edit",
    "regenerate",
    "continue",
    "show",
    "park",
    "unpark",
    "cancel",
    "prioritise",
    "drain",
    "undrain",
    "logout",
    "login",
)


@pytest.fixture
def browser(staff) -> Browser:
    browser = Browser(enforce_csrf_checks=True)
    browser.force_login(staff)
    return browser


def url_of(name: str, chat: Chat, generation: object) -> str:
    question, answer = ([m.pk] for m in chat.messages.all())
    of_messages = {"edit": question, "show": question, "regenerate": answer, "continue": answer}
    own = {"send": [chat.pk], "stop": [generation.pk]}  # type: ignore[attr-defined]
    arguments = {**own, **of_messages}.get(name, [])
    return reverse(name, args=arguments)


@pytest.mark.parametrize("name", WRITES)
def test_a_write_without_the_token_is_refused(name, browser, staff, chat, generation):
    Chat.objects.update(user=staff)
    fields = {"text": "x", "worker": "w1", "generation": generation.pk, "username": "a", "password": "b"}
    for headers in ({}, {"x-csrftoken": "x" * 32}, {"origin": "https://evil.example"}):
        reply = browser.post(url_of(name, chat, generation), fields, headers=headers)
        assert reply.status_code == 403
    assert Chat.objects.count() == 1
    assert not sync_client().exists(JOBS, CONTROL)
    assert browser.get("/").status_code == 200  # still signed in


def test_no_write_is_missing_above():
    """Every page that takes a POST: those of the dashboard, and signing in and out."""
    names = {p.name for p in dashboard.urlpatterns if isinstance(p, URLPattern)} | {"login", "logout"}
    assert names - set(WRITES) == {"chat", "monitor", "offline", "service_worker"}  # which are for GET alone
    assert all(not getattr(p.callback, "csrf_exempt", False) for p in dashboard.urlpatterns)
    top = {str(pattern.pattern) for pattern in get_resolver().url_patterns}
    assert top == {"admin/login/", "admin/", "accounts/login/", "accounts/logout/", "words.js", ""}


@pytest.mark.parametrize("path", ["/", "/chats/1/", "/monitor/"])
def test_a_page_takes_no_post(path, staff):
    browser = Browser()
    browser.force_login(staff)
    assert browser.post(path).status_code == 405


def test_the_admin_needs_the_token_too(transactional_db):
    browser = Browser(enforce_csrf_checks=True)
    browser.force_login(User.objects.create_superuser("root"))
    assert browser.post(reverse("admin:inference_apikey_add"), {"name": "x"}).status_code == 403
    assert not ApiKey.objects.exists()


def test_the_sessions_of_who_is_deactivated_are_dead(client, ada):
    client.force_login(ada)
    assert client.get("/").status_code == 200
    User.objects.filter(pk=ada.pk).update(is_active=False)
    assert client.get("/").status_code == 302
    assert client.post("/chats/", {"text": "x"}).status_code == 302
    assert not Chat.objects.exists()


def test_another_password_ends_the_sessions_of_the_old_one(client, ada):
    client.force_login(ada)
    ada.set_password("another-horse-battery")
    ada.save()
    assert client.get("/").status_code == 302


@pytest.fixture
def password(ada, settings) -> str:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    ada.set_password("correct-horse-battery")
    ada.save()
    return "correct-horse-battery"


def test_a_session_is_another_after_signing_in_and_none_after_signing_out(client, password, settings):
    client.get("/accounts/login/")
    planted = client.session
    planted["x"] = 1
    planted.save()
    before = planted.session_key
    client.post("/accounts/login/", {"username": "ada", "password": password})
    after = client.cookies[settings.SESSION_COOKIE_NAME].value
    assert after != before
    client.post("/accounts/logout/")
    thief = Browser()
    thief.cookies[settings.SESSION_COOKIE_NAME] = after
    assert thief.get("/").status_code == 302


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "javascript:alert(1)", "/\\evil.example"]
)
def test_signing_in_leads_to_no_other_site(target, client, password):
    for path in ("/accounts/login/", "/admin/login/"):
        reply = client.get(path, {"next": target}, follow=True)
        assert reply.redirect_chain in ([], [(f"/accounts/login/?next={_quoted(target)}", 302)])
    form = {"username": "ada", "password": password, "next": target}
    assert client.post("/accounts/login/", form).url == "/"


def _quoted(target: str) -> str:
    from urllib.parse import quote

    return quote(target, safe="/")
