"""Another password: only with the old one, or with a link that only its owner gets."""

from __future__ import annotations

import re
from io import StringIO
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.test import Client as Browser

from dashboard.account import bounds, reset
from inference.broker import throttle
from inference.broker.connect import sync_client
from project import email

OLD, NEW = "some quiet words", "many loud words"
RESET = "/accounts/reset/"


@pytest.fixture(autouse=True)
def _fast(settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def ada(transactional_db) -> User:
    return User.objects.create_user("ada", "ada@example.org", OLD)


def browser_of(user: User) -> Browser:
    browser = Browser()
    browser.force_login(user)
    return browser


def change(browser: Browser, password: str = OLD, new: str = NEW):
    return browser.post("/account/password/", {"password": password, "new_password": new, "again": new})


def test_a_changed_password_ends_every_other_session_and_not_ones_own(ada):
    here, elsewhere = browser_of(ada), browser_of(ada)
    before = here.cookies[next(iter(here.cookies))].value
    assert change(here).url == "/account/"
    assert "Your password is changed" in here.get("/account/").text
    assert elsewhere.get("/").status_code == 302
    ada.refresh_from_db()
    assert ada.check_password(NEW)
    thief = Browser()
    thief.cookies[next(iter(here.cookies))] = before  # of this very session, as it was
    assert thief.get("/").status_code == 302


@pytest.mark.parametrize(("password", "new"), [("wrong", NEW), ("", NEW), (OLD, "short"), (OLD, "")])
def test_a_wrong_or_a_weak_one_changes_nothing(password, new, ada):
    here, elsewhere = browser_of(ada), browser_of(ada)
    assert change(here, password, new).status_code == 400
    assert elsewhere.get("/").status_code == 200
    ada.refresh_from_db()
    assert ada.check_password(OLD)


@pytest.mark.parametrize("page", ["password", "email", "sessions", "delete"])
def test_who_sits_down_at_ones_browser_cannot_guess_the_password(page, ada, monkeypatch):
    monkeypatch.setattr(throttle, "OF_ACCOUNT", 3)
    browser = browser_of(ada)
    form = {"new_password": NEW, "again": NEW, "email": "thief@example.org"}
    said = [browser.post(f"/account/{page}/", {"password": "wrong", **form}).status_code for _ in range(3)]
    assert said == [400] * 3
    reply = browser.post(f"/account/{page}/", {"password": OLD, **form})
    assert reply.status_code == 429
    assert int(reply["Retry-After"]) > 0
    ada.refresh_from_db()
    assert ada.check_password(OLD)
    assert ada.email == "ada@example.org"


def test_signing_out_everywhere_else_leaves_the_password_and_this_session(ada):
    here, elsewhere = browser_of(ada), browser_of(ada)
    assert here.post("/account/sessions/", {"password": OLD}).status_code == 302
    assert here.get("/").status_code == 200
    assert elsewhere.get("/").status_code == 302
    ada.refresh_from_db()
    assert ada.check_password(OLD)


@pytest.fixture
def with_mail(settings, transactional_db) -> None:
    settings.HAS_EMAIL = True


def ask(address: str, **more: Any):
    reply: Any = Browser().post(RESET, {"email": address}, **more)
    reset.mailer.submit(int).result()  # what was to be sent has been
    return reply


def link_in(text: object) -> str:
    [link] = re.findall(r"http://\S+/accounts/reset/\S+", str(text))
    return str(link)


def choose(link: str, new: str = NEW, browser: Browser | None = None):
    """Follow a link and fill in the form."""
    browser = browser or Browser()
    page = browser.get(urlsplit(link).path, follow=True)
    path = page.redirect_chain[-1][0] if page.redirect_chain else urlsplit(link).path
    return browser.post(path, {"new_password": new, "again": new})


def test_a_link_lets_its_owner_choose_another_password_once(ada, with_mail):
    elsewhere = browser_of(ada)
    assert ask("ada@example.org").url == "/accounts/reset/asked/"
    [message] = mail.outbox
    assert message.to == ["ada@example.org"]
    assert "ada" in message.body
    assert choose(link_in(message.body)).url == "/accounts/login/"
    ada.refresh_from_db()
    assert ada.check_password(NEW)
    assert elsewhere.get("/").status_code == 302
    reply = choose(link_in(message.body), "third quiet words")
    assert "This link is used up" in reply.text
    ada.refresh_from_db()
    assert ada.check_password(NEW)


def test_a_weak_password_is_refused_there_too_and_the_link_stays_good(ada, with_mail):
    ask("ada@example.org")
    link = link_in(mail.outbox[0].body)
    assert choose(link, "short").status_code == 400
    assert choose(link).status_code == 302


def test_the_token_is_in_no_address_of_the_page_that_shows_the_form(ada, with_mail):
    ask("ada@example.org")
    link = link_in(mail.outbox[0].body)
    token = link.rstrip("/").rpartition("/")[2]
    page = Browser().get(urlsplit(link).path, follow=True)
    assert token not in page.redirect_chain[-1][0]
    assert token not in page.text


@pytest.mark.parametrize("path", ["MQ/x-y", "MQ/set-password", "xx/set-password", "OTk5/c-0123", "%00/x"])
def test_a_link_that_was_made_up_opens_nothing(path, ada):
    reply = Browser().get(f"/accounts/reset/{path}/", follow=True)
    assert "This link is used up" in reply.text
    assert "<form" not in reply.text.partition("<main")[2]


def test_the_answer_does_not_tell_whether_an_address_is_known(ada, with_mail):
    User.objects.filter(pk=User.objects.create_user("eve", "eve@example.org").pk).update(is_active=False)
    replies = [ask(f"{name}@example.org") for name in ("ada", "nobody", "eve")]
    assert {(reply.status_code, reply.url) for reply in replies} == {(302, "/accounts/reset/asked/")}
    assert [message.to for message in mail.outbox] == [["ada@example.org"]]


def test_nobodys_mailbox_is_flooded(ada, with_mail, monkeypatch):
    monkeypatch.setattr(bounds, "MAILS", 2)
    for i, address in enumerate(["ada@example.org", "ADA@example.org", "ada@example.org"]):
        assert ask(address, REMOTE_ADDR=f"192.0.2.{i}").status_code == 302  # and this is not told
    assert len(mail.outbox) == 2


def test_one_address_cannot_ask_without_end(ada, with_mail, monkeypatch):
    monkeypatch.setattr(bounds, "RESETS", 2)
    assert [ask(f"x{i}@example.org").status_code for i in range(3)] == [302, 302, 429]


@pytest.mark.parametrize("header", ["HTTP_HOST", "HTTP_X_FORWARDED_HOST"])
def test_a_link_leads_to_no_host_that_the_client_made_up(header, ada, with_mail, settings):
    ask("ada@example.org", **{header: "evil.example"})
    settings.ALLOWED_HOSTS = ["*"]
    ask("ada@example.org", **{header: "evil.example"})
    settings.PUBLIC_URL = "http://chat.example.org"
    ask("ada@example.org", **{header: "evil.example"})
    assert all("evil" not in message.body for message in mail.outbox)
    assert link_in(mail.outbox[-1].body).startswith("http://chat.example.org/")


def test_without_mail_the_page_says_whom_to_ask_and_nothing_is_counted(ada):
    for reply in (Browser().get(RESET), Browser().post(RESET, {"email": "ada@example.org"})):
        assert "an administrator can give you a link" in reply.text
    assert reply.status_code == 403
    assert not mail.outbox
    assert not list(sync_client().scan_iter("*attempts*"))


def test_an_operators_command_makes_a_link(ada):
    out = StringIO()
    call_command("password_reset_link", "ada", stdout=out)
    assert out.getvalue().startswith("http://127.0.0.1:8000/")
    choose(out.getvalue().strip())
    ada.refresh_from_db()
    assert ada.check_password(NEW)


def test_the_command_says_why_there_is_none(ada):
    User.objects.filter(pk=ada.pk).update(is_active=False)
    for name, why in (("ada", "not active"), ("nobody", "no user")):
        with pytest.raises(CommandError, match=why):
            call_command("password_reset_link", name)


@pytest.mark.parametrize(
    ("url", "host", "port", "ssl", "tls"),
    [
        ("smtp://me:p%40ss@mail.example.org", "mail.example.org", 587, False, True),
        ("smtps://mail.example.org:1465", "mail.example.org", 1465, True, False),
        ("smtp://localhost:25?starttls=no", "localhost", 25, False, False),
    ],
)
def test_email_url_says_how_mail_is_sent(url, host, port, ssl, tls):
    found = email.settings(url)
    assert (found["EMAIL_HOST"], found["EMAIL_PORT"]) == (host, port)
    assert (found["EMAIL_USE_SSL"], found["EMAIL_USE_TLS"]) == (ssl, tls)
    assert found["EMAIL_HOST_PASSWORD"] == ("p@ss" if "p%40ss" in url else "")


@pytest.mark.parametrize(
    "url", ["mail.example.org", "smtp://", "http://x", "smtp://me:secret@h:port", "file:///"]
)
def test_one_that_cannot_be_used_is_refused_without_its_password(url):
    with pytest.raises(ImproperlyConfigured, match="smtp://USER:PASSWORD@HOST:PORT") as caught:
        email.settings(url)
    assert "secret" not in str(caught.value)
