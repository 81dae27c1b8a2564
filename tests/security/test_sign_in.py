"""Guessing passwords: a bound for each account from each address, which nobody elsewhere feels."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client as Browser

from inference.broker import throttle
from inference.broker.connect import sync_client
from inference.broker.keys import PREFIX

RIGHT = "correct-horse-battery"
LOGIN = "/accounts/login/"


def attempt(name: str = "ada", password: str = "wrong", address: str = "192.0.2.7", **headers: str) -> int:
    reply = Browser().post(
        LOGIN, {"username": name, "password": password}, REMOTE_ADDR=address, headers=headers
    )
    return int(reply.status_code)


@pytest.fixture(autouse=True)
def _few_and_fast(monkeypatch, settings) -> None:
    monkeypatch.setattr(throttle, "OF_ACCOUNT", 3)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def ada(ada: User) -> User:
    ada.set_password(RIGHT)
    ada.save()
    return ada


@pytest.fixture
def grace(grace: User) -> User:
    grace.set_password(RIGHT)
    grace.save()
    return grace


def test_guesses_come_to_an_end_and_the_answer_says_for_how_long(ada):
    assert [attempt() for _ in range(3)] == [200, 200, 200]
    reply = Browser().post(LOGIN, {"username": "ada", "password": "wrong"}, REMOTE_ADDR="192.0.2.7")
    assert reply.status_code == 429
    assert 0 < int(reply["Retry-After"]) <= throttle.WINDOW_S
    assert f"Try again in {reply['Retry-After']} seconds" in reply.text
    assert 'value="ada"' in reply.text  # the form stays as it was


def test_then_the_right_password_is_not_looked_at_either(ada):
    for _ in range(3):
        attempt()
    assert attempt(password=RIGHT) == 429


def test_the_right_password_is_let_in_from_elsewhere(ada):
    for _ in range(10):
        attempt()
    assert attempt(password=RIGHT, address="198.51.100.1") == 302


def test_other_accounts_of_the_same_address_are_let_in(ada, grace):
    for _ in range(10):
        attempt()
    assert attempt("grace", RIGHT) == 302


def test_the_wait_ends(ada):
    for _ in range(4):
        attempt()
    for key in sync_client().scan_iter(f"{PREFIX}attempts:*"):
        assert 0 < sync_client().ttl(key) <= throttle.WINDOW_S
        sync_client().delete(key)  # as its time to live does
    assert attempt(password=RIGHT) == 302


def test_who_signs_in_begins_anew(ada):
    for _ in range(3):
        assert [attempt(), attempt(), attempt(password=RIGHT)] == [200, 200, 302]


@pytest.mark.parametrize("name", [" ada", "ada ", "\uff41da", "a\u0064a"])
def test_another_spelling_of_a_name_is_no_other_account(name, ada):
    for _ in range(3):
        attempt()
    assert attempt(name, RIGHT) == 429


def test_one_password_for_many_names_comes_to_an_end(ada, monkeypatch):
    monkeypatch.setattr(throttle, "OF_ADDRESS", 5)
    assert [attempt(f"name{i}") for i in range(6)] == [200] * 5 + [429]
    assert attempt(password=RIGHT) == 429
    assert attempt(password=RIGHT, address="198.51.100.1") == 302


def test_addresses_of_one_ipv6_network_are_one(ada):
    for i in range(3):
        attempt(address=f"2001:db8:1:2::{i}")
    assert attempt(address="2001:db8:1:2:ffff::1") == 429
    assert attempt(address="2001:db8:1:3::1") == 200


def test_what_a_client_says_of_its_address_changes_nothing(ada):
    answers = [attempt(**{"x-forwarded-for": f"203.0.113.{i}"}) for i in range(4)]
    assert answers == [200, 200, 200, 429]


def test_behind_a_trusted_proxy_each_client_has_an_address_of_its_own(ada, settings):
    settings.TRUSTED_PROXIES = ["127.0.0.0/8"]
    proxied = {"address": "127.0.0.1"}
    for i in range(4):  # the left one is the client's invention
        attempt(**proxied, **{"x-forwarded-for": f"10.0.0.{i}, 203.0.113.9"})
    assert attempt(**proxied, **{"x-forwarded-for": "203.0.113.9"}) == 429
    assert attempt(**proxied, **{"x-forwarded-for": "203.0.113.10"}) == 200


def test_many_guesses_at_once_are_no_way_around(ada):
    with ThreadPoolExecutor(8) as threads:
        waits = list(threads.map(lambda _: throttle.count("ada", "192.0.2.7"), range(50)))
    assert waits.count(0) == 3


def test_the_admin_has_no_door_of_its_own(ada):
    for _ in range(4):
        reply: Any = Browser().post(
            "/admin/login/", {"username": "ada", "password": RIGHT}, REMOTE_ADDR="192.0.2.7"
        )
        assert reply.url.startswith(LOGIN)


def test_the_admin_has_no_form_in_which_a_password_could_be_guessed(ada):
    ada.is_staff = True
    ada.save()
    browser = Browser()
    browser.force_login(ada)
    wrong = {"old_password": "wrong", "new_password1": RIGHT * 2, "new_password2": RIGHT * 2}
    reply: Any = browser.post("/admin/password_change/", wrong)
    assert reply.url == "/account/password/"


def test_a_name_that_nobody_has_is_answered_as_a_wrong_password(ada):
    replies = [Browser().post(LOGIN, {"username": name, "password": "wrong"}).text for name in ("ada", "eda")]
    tokens = [reply.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0] for reply in replies]
    plain = [reply.replace(token, "") for reply, token in zip(replies, tokens, strict=True)]
    assert plain[0].replace('value="ada"', "") == plain[1].replace('value="eda"', "")


def test_who_is_deactivated_is_answered_as_a_wrong_password(ada):
    ada.is_active = False
    ada.save()
    assert attempt(password=RIGHT) == 200


def test_one_can_sign_in_while_redis_is_away(ada, redis_server):
    redis_server.kill()
    assert attempt() == 200
    assert attempt(password=RIGHT) == 302
