"""What browsers are told, on every page and every answer; and that the settings stand Django's own checks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from inference.models import Chat
from tests.api.play import fetch
from tests.e2e.stack import ROOT, free_port

PAGES = [
    "/accounts/login/",
    "/",
    "/monitor/",
    "/admin/",
    "/admin/inference/chat/",
    "/admin/auth/user/add/",
    "/nothing",
]


@pytest.fixture
def staff(db: None, client: Client) -> Client:
    client.force_login(User.objects.create_superuser("root"))
    return client


def directives(policy: str) -> dict[str, list[str]]:
    return {name: values for name, *values in (part.split() for part in policy.split(";"))}


def check_page(headers: Any) -> None:
    policy = directives(headers["Content-Security-Policy"])
    assert policy["default-src"] == ["'none'"]
    for name, values in policy.items():
        if name.endswith("-src") and name != "default-src":
            assert values == ["'self'"], name
    assert policy["frame-ancestors"] == policy["base-uri"] == ["'none'"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "camera=()" in headers["Permissions-Policy"]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_says_what_it_may_do(staff: Client, path: str) -> None:
    check_page(staff.get(path).headers)


def test_error_pages_say_it_too(staff: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    staff.raise_request_exception = False
    monkeypatch.setattr("dashboard.views.thread", lambda chat: 1 / 0)
    chat = Chat.objects.create(user=User.objects.get())
    for response, status in [
        (staff.get(f"/chats/{chat.pk}/"), 500),
        (staff.get("/", headers={"host": "evil.test"}), 400),
        (Client(enforce_csrf_checks=True).post("/accounts/login/"), 403),
    ]:
        assert response.status_code == status
        assert "script-src 'self'" in response.headers["Content-Security-Policy"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_pages_of_ours_trust_one_sanitiser_alone(staff: Client) -> None:
    policy = directives(staff.get("/").headers["Content-Security-Policy"])
    assert policy["require-trusted-types-for"] == ["'script'"]
    assert policy["trusted-types"] == ["dompurify", "highlighter", "offline"]


@pytest.mark.parametrize("path", ["/health", "/v1/models", "/v1/nothing", "/slots/0/", "/openapi.json"])
async def test_an_answer_of_the_api_is_never_a_page(path: str, transactional_db: None) -> None:
    client = await fetch("GET", path)
    assert client.headers["x-content-type-options"] == "nosniff"
    assert client.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert client.headers["content-type"].startswith("application/json")


def test_no_script_can_read_a_cookie(db: None) -> None:
    User.objects.create_user("ada", password="correct-horse-battery")
    client = Client()
    client.get("/accounts/login/")
    client.post("/accounts/login/", {"username": "ada", "password": "correct-horse-battery"})
    assert len(client.cookies) == 2
    for cookie in client.cookies.values():
        assert cookie["httponly"]
        assert cookie["samesite"] in ("Lax", "Strict")


# --- by how the server is run ---------------------------------------------------------------------


def manage(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("DJANGO_SETTINGS_MODULE", "BERTH_OPTIONS")}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=kept | environ,
        capture_output=True,
        text=True,
    )


def check_deploy(**environ: str) -> subprocess.CompletedProcess[str]:
    return manage("check", "--deploy", "--fail-level", "WARNING", **environ)


def test_check_deploy_has_nothing_to_say_on_loopback() -> None:
    done = check_deploy()
    assert done.returncode == 0, done.stderr


def test_check_deploy_has_nothing_to_say_behind_a_proxy_with_tls() -> None:
    done = check_deploy(BERTH_TLS_PROXY="1", ALLOWED_HOSTS="chat.example.org")
    assert done.returncode == 0, done.stderr


def test_check_deploy_warns_who_serves_others_without_tls() -> None:
    done = check_deploy(LLAMA_ARG_HOST="0.0.0.0")
    assert done.returncode != 0
    assert "SESSION_COOKIE_SECURE" in done.stderr


SHOW_LOGIN = """
import json
from django.test import Client
from django.conf import settings
plain = Client().get("/accounts/login/", headers={"host": "chat.example.org"})
tls = Client().get("/accounts/login/", headers={"host": "chat.example.org", "x-forwarded-proto": "https"})
print(json.dumps({
    "plain": [plain.status_code, plain.headers.get("Location")],
    "tls": tls.status_code,
    "hsts": tls.headers.get("Strict-Transport-Security"),
    "secure": [bool(cookie["secure"]) for cookie in tls.cookies.values()],
    "session": settings.SESSION_COOKIE_SECURE,
}))
"""


def test_behind_a_proxy_with_tls_cookies_and_pages_go_over_https_alone() -> None:
    environ = {"BERTH_TLS_PROXY": "1", "ALLOWED_HOSTS": "www.example.org, chat.example.org"}
    done = manage("shell", "--no-imports", "-c", SHOW_LOGIN, **environ)
    shown = json.loads(done.stdout)
    assert shown["plain"] == [301, "https://chat.example.org/accounts/login/"]
    assert shown["tls"] == 200
    assert shown["secure"] == [True]
    assert shown["session"] is True
    assert shown["hsts"] == "max-age=31536000"


def test_a_server_behind_a_proxy_does_not_start_without_a_key(tmp_path: Path) -> None:
    done = manage("serve", "--tls-proxy", "--data-dir", str(tmp_path), "--port", str(free_port()))
    assert done.returncode == 78
    assert "a server behind a proxy can be reached by others and no API key exists" in done.stderr


async def test_behind_a_proxy_nobody_is_the_person_at_the_machine(
    transactional_db: None, settings: Any
) -> None:
    assert (await fetch("GET", "/props")).status == 503  # no worker, but let in
    settings.BERTH = replace(settings.BERTH, tls_proxy=True)
    assert (await fetch("GET", "/props")).status == 401


def test_a_server_for_others_answers_to_its_own_names_alone() -> None:
    code = "from django.conf import settings; print(settings.ALLOWED_HOSTS)"
    done = manage("shell", "--no-imports", "-c", code, LLAMA_ARG_HOST="0.0.0.0")
    assert "*" not in done.stdout
    assert "localhost" in done.stdout
