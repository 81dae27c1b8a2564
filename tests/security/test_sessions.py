"""Writes by session need the page's token, and a session ends with its person."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser
from django.urls import URLPattern, get_resolver, reverse

from dashboard import urls as dashboard
from dashboard.account import urls as account
from inference.broker.connect import sync_client
from inference.broker.keys import CONTROL, JOBS
from inference.models import ApiKey, Chat, Generation

from .conftest import argument

WRITES = (
    "chats",
    "send",
    "rename",
    "settings",
    "check_settings",
    "delete",
    "restore",
    "shares",
    "revoke",
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
    "sign_up",
    "set_language",
    "password_reset",
    "password_reset_confirm",
    "account_keys",
    "account_revoke",
    "account_password",
    "account_email",
    "account_sessions",
    "account_delete",
)
FOR_GET = {
    "more",
    "search",
    "shared",
    "export_markdown",
    "export_json",
    "chat",
    "monitor",
    "offline",
    "service_worker",
    "account",
    "account_export",
    "account_deleted",
    "password_reset_done",
    "words",
}


@pytest.fixture
def browser(staff) -> Browser:
    browser = Browser(enforce_csrf_checks=True)
    browser.force_login(staff)
    return browser


def url_of(name: str, generation: Generation) -> str:
    fixed: dict[str, list[object]] = {"account_revoke": [1], "password_reset_confirm": ["MQ", "set-password"]}
    if name in fixed:
        return reverse(name, args=fixed[name])
    routes = [str(p.pattern) for p in dashboard.urlpatterns if p.name == name] or [""]
    return reverse(name, args=argument(routes[0], generation))


@pytest.mark.parametrize("name", WRITES)
def test_a_write_without_the_token_is_refused(name, browser, staff, chat, generation):
    Chat.objects.update(user=staff)
    fields = {"text": "x", "worker": "w1", "generation": generation.pk, "username": "a", "password": "b"}
    for headers in ({}, {"x-csrftoken": "x" * 32}, {"origin": "https://evil.example"}):
        reply = browser.post(url_of(name, generation), fields, headers=headers)
        assert reply.status_code == 403
    assert Chat.objects.count() == 1
    assert not sync_client().exists(JOBS, CONTROL)
    assert browser.get("/").status_code == 200  # still signed in


def test_no_write_is_missing_above():
    """Every page that takes a POST, but those of the admin."""
    top = get_resolver().url_patterns
    ours = [p for p in (*top, *dashboard.urlpatterns, *account.urlpatterns) if isinstance(p, URLPattern)]
    assert {p.name for p in ours if p.name} - set(WRITES) == FOR_GET
    assert all(not getattr(p.callback, "csrf_exempt", False) for p in ours)
    assert {str(p.pattern) for p in top if not isinstance(p, URLPattern)} == {"admin/", "account/", ""}
    assert {str(p.pattern) for p in ours if not p.name} == {"admin/login/", "admin/password_change/"}


@pytest.mark.parametrize("path", ["/", "/chats/1/", "/monitor/", "/chats/more", "/chats/search", "/s/x/"])
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
