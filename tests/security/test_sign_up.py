"""Making an account: only where it is open, not too often, and never more than an account."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser

from dashboard.account import bounds
from inference.options import parse

GOOD = "some quiet words"
PATH = "/accounts/sign-up/"


@pytest.fixture(autouse=True)
def _is_open(transactional_db, options, settings) -> None:
    options(sign_up=True)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


def sign_up(browser: Browser | None = None, address: str = "192.0.2.7", **fields: str):
    filled_in = {"name": "ada", "new_password": GOOD, "again": GOOD, **fields}
    return (browser or Browser()).post(PATH, filled_in, REMOTE_ADDR=address)


def test_it_is_closed_unless_the_operator_opens_it():
    assert not parse([], {}).sign_up
    assert parse(["--sign-up"], {}).sign_up
    assert parse([], {"BERTH_SIGN_UP": "on"}).sign_up
    assert not parse(["--no-sign-up"], {"BERTH_SIGN_UP": "on"}).sign_up


def test_where_it_is_closed_the_page_says_so_and_nothing_is_made(options):
    options(sign_up=False)
    for reply in (Browser().get(PATH), sign_up()):
        assert reply.status_code == 403
        assert "Sign-up is closed" in reply.text
        assert "<form" not in reply.text
    assert not User.objects.exists()
    assert PATH not in Browser().get("/accounts/login/").text


def test_where_it_is_open_the_sign_in_page_leads_to_it():
    assert PATH in Browser().get("/accounts/login/").text


def test_who_signs_up_is_signed_in_and_is_nobody_special():
    browser = Browser()
    reply = sign_up(browser, email="ada@example.org", is_staff="1", is_superuser="on")
    assert (reply.status_code, reply.url) == (302, "/")
    assert browser.get("/").status_code == 200
    ada = User.objects.get()
    assert (ada.username, ada.email, ada.check_password(GOOD)) == ("ada", "ada@example.org", True)
    assert not any((ada.is_staff, ada.is_superuser, ada.user_permissions.exists(), ada.groups.exists()))


@pytest.mark.parametrize("name", ["ada", "ADA", " ada ", "\uff41da", "Root", "support"])
def test_a_name_that_somebody_has_or_might_be_taken_for_is_refused(name):
    User.objects.create_user("ada")
    reply = sign_up(name=name)
    assert reply.status_code == 400
    assert "This name is taken. Choose another." in reply.text
    assert User.objects.count() == 1


@pytest.mark.parametrize(
    ("has", "wants"),
    [
        ("сара", "capa"),
        ("capa", "Сара"),
        ("νικο", "viko"),
        ("änne", "ÄNNE"),  # which SQLite takes for two
    ],
)
def test_a_name_that_looks_like_somebody_s_is_taken(has, wants):
    User.objects.create_user(has)
    assert "This name is taken. Choose another." in sign_up(name=wants).text
    assert sign_up(name=wants + "7").status_code == 302


def test_a_name_has_letters_of_one_alphabet():
    assert "letters of one alphabet" in sign_up(name="аnna").text
    assert not User.objects.exists()
    assert sign_up(name="Анна2").status_code == 302
    assert sign_up(name="田中anna").status_code == 302


@pytest.mark.parametrize(
    "name", ["a", "a" * 31, "a b", "a\u202eb", "a\nb", "<b>", "-a", "a/b", "a@b", "\u200bab"]
)
def test_a_name_that_could_deceive_is_refused_with_the_rule(name):
    reply = sign_up(name=name)
    assert reply.status_code == 400
    assert "2 to 30 letters and digits" in reply.text
    assert not User.objects.exists()


@pytest.mark.parametrize(
    ("password", "said"),
    [
        ("sh0rt", "Use at least 8 characters."),
        ("password1", "Use several words"),
        ("8461927350", "Use letters too."),
        ("ada-lovelace-1", "too much like your name"),
    ],
)
def test_a_weak_password_is_refused_with_what_to_do(password, said):
    reply = sign_up(name="ada-lovelace", new_password=password, again=password)
    assert reply.status_code == 400
    assert said in reply.text
    assert password not in reply.text
    assert not User.objects.exists()


def test_two_passwords_that_differ_are_refused():
    reply = sign_up(again="other quiet words")
    assert reply.status_code == 400
    assert "The two are not the same." in reply.text
    assert not User.objects.exists()


def test_what_was_right_stays_in_the_form_but_for_passwords():
    reply = sign_up(name="grace", email="grace@example.org", again="x")
    assert 'value="grace"' in reply.text
    assert 'value="grace@example.org"' in reply.text
    assert GOOD not in reply.text
    [field] = re.findall(r'<input [^>]*name="again"[^>]*>', reply.text)
    assert 'aria-invalid="true"' in field
    assert 'aria-describedby="id_again_error"' in field


def test_names_cannot_be_tried_without_end(monkeypatch):
    monkeypatch.setattr(bounds, "SIGN_UPS", 3)
    User.objects.create_user("ada")
    assert [sign_up(again="x").status_code for _ in range(3)] == [400] * 3
    for name in ("ada", "nobody"):  # the answer is the same for a name that is taken and one that is free
        reply = sign_up(name=name)
        assert reply.status_code == 429
        assert int(reply["Retry-After"]) > 0
        assert "Too many attempts" in reply.text
        assert "taken" not in reply.text
    assert User.objects.count() == 1
    assert sign_up(name="nobody", address="198.51.100.1").status_code == 302


def test_who_is_signed_in_makes_no_second_account():
    browser = Browser()
    sign_up(browser)
    assert sign_up(browser, name="second").url == "/"
    assert User.objects.count() == 1


def test_one_can_sign_up_while_redis_is_away(redis_server):
    redis_server.kill()
    assert sign_up().status_code == 302
