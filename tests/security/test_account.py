"""One's own account: keys, e-mail address, data. Nobody reaches another's, and what goes is gone."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client as Browser
from django.utils import timezone

from dashboard import conversation, titles
from dashboard.account import bounds, usage
from inference.models import ApiKey, Chat, Generation, Message, OperatorAction, Share, UserLimits
from inference.wire import openai

from .conftest import SECRET, cancelled
from .test_keys import everything_stored

PASSWORD = "some quiet words"
PAGES = ["", "keys/", "keys/1/revoke/", "password/", "email/", "sessions/", "export/", "delete/"]


@pytest.fixture(autouse=True)
def _fast(settings) -> None:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def ada(ada: User) -> User:
    ada.set_password(PASSWORD)
    ada.email = "ada@example.org"
    ada.save()
    return ada


@pytest.fixture
def browser(ada: User) -> Browser:
    browser = Browser()
    browser.force_login(ada)
    return browser


def create(browser: Browser, name: str = "laptop", lifetime: str = "90"):
    return browser.post("/account/keys/", {"name": name, "lifetime": lifetime})


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("method", ["get", "post"])
def test_nobody_else_has_an_account_page(page, method, transactional_db):
    reply = getattr(Browser(), method)(f"/account/{page}")
    assert reply.status_code == 302
    assert reply.url.startswith("/accounts/login/")


def test_a_new_key_is_ones_own_shown_once_and_kept_nowhere(browser, ada):
    reply = create(browser)
    [plain] = set(re.findall(r"sk-berth-[\w-]{20,}", reply.text))
    key = ApiKey.objects.usable().with_key(plain).get()
    assert (reply.status_code, key.owner, key.name) == (201, ada, "laptop")
    assert key.expires_at
    assert timedelta(days=89) < key.expires_at - timezone.now() < timedelta(days=91)
    assert "no-store" in reply["Cache-Control"]
    assert plain not in everything_stored() + browser.get("/account/").text + str(reply.cookies)
    assert key.prefix in browser.get("/account/").text


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"name": "", "lifetime": "90"}, "Say what the key is for."),
        ({"name": "x" * 101, "lifetime": "90"}, "100 characters at most"),
        ({"name": "x", "lifetime": "9999"}, "Choose one of these."),
    ],
)
def test_a_form_that_is_not_right_makes_no_key(form, said, browser):
    reply = browser.post("/account/keys/", form)
    assert reply.status_code == 400
    assert said in reply.text
    assert not ApiKey.objects.exists()


def test_a_key_gets_no_more_than_its_owner_may(browser, ada):
    browser.post(
        "/account/keys/",
        {"name": "x", "lifetime": "", "max_priority": "-100", "max_concurrent": "9", "owner": "1"},
    )
    key = ApiKey.objects.get()
    assert (key.ceiling, key.max_concurrent, key.expires_at) == (0, None, None)


def test_a_person_has_so_many_keys_and_revoking_one_makes_room(browser, monkeypatch):
    monkeypatch.setattr(bounds, "KEYS", 2)
    assert [create(browser).status_code for _ in range(3)] == [201, 201, 400]
    assert "Revoke one that you don" in create(browser).text
    key = ApiKey.objects.latest("pk")
    browser.post(f"/account/keys/{key.pk}/revoke/")
    assert create(browser).status_code == 201


def test_keys_are_not_made_without_end(browser, monkeypatch):
    monkeypatch.setattr(bounds, "KEYS_MADE", 2)
    said = []
    for _ in range(3):
        said.append(create(browser))
        for key in ApiKey.objects.filter(revoked_at=None):
            browser.post(f"/account/keys/{key.pk}/revoke/")
    assert [reply.status_code for reply in said] == [201, 201, 429]
    assert int(said[-1]["Retry-After"]) > 0


def test_a_key_is_revoked_after_a_question(browser):
    create(browser)
    key = ApiKey.objects.get()
    assert "Revoke “laptop”?" in browser.get(f"/account/keys/{key.pk}/revoke/").text
    assert ApiKey.objects.usable().exists()
    assert browser.post(f"/account/keys/{key.pk}/revoke/").url == "/account/"
    assert not ApiKey.objects.usable().exists()
    first = ApiKey.objects.get().revoked_at
    browser.post(f"/account/keys/{key.pk}/revoke/")
    assert ApiKey.objects.get().revoked_at == first


@pytest.mark.parametrize("method", ["get", "post"])
def test_anothers_key_is_not_there(method, browser, grace):
    key, _ = ApiKey.objects.create_key("hers", grace)
    assert getattr(browser, method)(f"/account/keys/{key.pk}/revoke/").status_code == 404
    assert ApiKey.objects.usable().exists()
    assert "hers" not in browser.get("/account/").text


def test_another_address_takes_the_password(browser, ada):
    for password, status in (("wrong", 400), (PASSWORD, 302)):
        reply = browser.post("/account/email/", {"email": "new@example.org", "password": password})
        assert reply.status_code == status
        ada.refresh_from_db()
        assert (ada.email == "new@example.org") == (status == 302)


def test_use_is_ones_own_in_the_browser_and_by_key(browser, ada, grace):
    key, _ = ApiKey.objects.create_key("laptop", ada)
    key_id, now = key.pk, timezone.now()

    def use(
        user: User, days: int, tokens: int, key: ApiKey | None = None, api: str = conversation.API
    ) -> None:
        Generation.objects.create(
            user=user,
            api_key=key,
            api=openai.CHAT.name if key else api,
            prompt_tokens=tokens,
            completion_tokens=2 * tokens,
            parked_s=tokens,
            created_at=now - timedelta(days=days),
        )

    use(ada, 0, 1)
    use(ada, 3, 10, key)
    use(ada, 20, 100)
    use(ada, 40, 1000)
    use(ada, 0, 100_000, api=titles.API)  # which the server made for itself
    use(grace, 0, 10_000)
    found = browser.get("/account/").context["usage"]
    day, week, month = (tuple(figures) for _, figures in found.totals)
    assert (day, week, month) == ((1, 1, 2, 1), (2, 11, 22, 11), (3, 111, 222, 111))
    assert tuple(found.in_browser) == (2, 101, 202, 101)
    assert tuple(found.of_key(key_id)) == (1, 10, 20, 10)
    key.delete()
    gone = browser.get("/account/").context["usage"]
    assert (gone.gone, gone.in_browser) == (found.of_key(key_id), found.in_browser)


def test_use_is_read_from_an_index_in_one_query(ada, django_assert_num_queries):
    with django_assert_num_queries(1) as asked:
        usage.of(ada)
    [query] = asked.captured_queries
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
        plan = " ".join(str(row) for row in cursor.fetchall())
    assert "USING INDEX" in plan
    assert "user_id=? AND created_at>?" in plan


def own_limits(browser: Browser) -> str:
    page = re.sub(r"<[^>]+>|\s+", " ", browser.get("/account/").text)
    return page.partition(" Limits ")[2].partition("API keys")[0]


def test_limits_are_ones_own(browser, ada, options):
    options(max_per_user=7, max_output=300)
    assert re.search(r"Answers at once +7 .*Tokens of an answer +300 .*priority +normal", own_limits(browser))
    UserLimits.objects.create(user=ada, max_concurrent=2, max_priority=-1)
    assert re.search(r"Answers at once +2 .*priority +high", own_limits(browser))
    german = browser.get("/account/", headers={"accept-language": "de"}).text
    assert "<dd>hoch</dd>" in german


def exported(browser: Browser) -> dict[str, Any]:
    reply: Any = browser.get("/account/export/")

    async def whole() -> bytes:
        return b"".join([piece async for piece in reply.streaming_content])

    found: dict[str, Any] = json.loads(async_to_sync(whole)())
    return found


@pytest.fixture
def everything(ada, grace, chat: Chat, generation) -> Chat:
    """Something of each kind of ada's, and something of grace's."""
    ApiKey.objects.create_key("laptop", ada)
    ApiKey.objects.create_key("hers", grace)
    assert chat.leaf
    Share.objects.create(chat=chat, leaf=chat.leaf)
    Chat.objects.create(user=grace, title="hers").add("user", "nobody but grace may read this")
    return chat


def test_an_export_has_all_that_is_ones_own_and_nothing_else(browser, everything, ada):
    found = exported(browser)
    assert found["account"]["username"] == "ada"
    [chat] = found["chats"]
    assert [message["content"] for message in chat["messages"]] == [SECRET, ""]
    assert chat["messages"][1]["parent_id"] == chat["messages"][0]["id"]
    assert len(chat["shares"]) == len(found["generations"]) == len(found["api_keys"]) == 1
    text = json.dumps(found)
    assert "hers" not in text
    assert "grace" not in text
    assert ada.password not in text
    assert ApiKey.objects.get(owner=ada).hash not in text


def test_an_export_goes_on_after_its_first_piece(browser, ada, monkeypatch):
    monkeypatch.setattr("dashboard.account.export.AT_ONCE", 2)
    at = timezone.now()
    for i in range(3):
        chat = Chat.objects.create(user=ada, title=f"{i}")
        for j in range(5):
            chat.add("user", f"{i}.{j}")
        Generation.objects.create(user=ada, created_at=at)  # three at the same time
    found = exported(browser)
    assert [m["content"] for c in found["chats"] for m in c["messages"]] == [
        f"{i}.{j}" for i in range(3) for j in range(5)
    ]
    assert len({row["id"] for row in found["generations"]}) == 3


def test_exports_are_not_made_without_end(browser, monkeypatch):
    monkeypatch.setattr(bounds, "EXPORTS", 1)
    assert exported(browser)
    assert browser.get("/account/export/").status_code == 429


def delete(browser: Browser, password: str = PASSWORD):
    return browser.post("/account/delete/", {"password": password})


def test_a_deleted_account_leaves_no_text_no_name_and_no_way_in(browser, everything, ada, generation):
    other = Browser()
    other.force_login(ada)
    OperatorAction.objects.create(kind="drain", by="somebody", user=ada, worker="w1")
    assert delete(browser).url == "/account/deleted/"
    assert "Your account is deleted" in browser.get("/account/deleted/").text
    kept = everything_stored()
    for gone in (SECRET, "ada@example.org", "laptop"):
        assert gone not in kept
    assert not re.search(r"^ada$", kept, re.MULTILINE)
    assert [chat.user.username for chat in Chat.objects.all()] == ["grace"]
    assert Message.objects.count() == ApiKey.objects.count() == 1
    row = Generation.objects.get()
    assert (row.pk, row.user, row.message) == (generation.pk, None, None)  # a figure, and no more
    assert OperatorAction.objects.get().by == "somebody"
    assert browser.get("/").status_code == other.get("/").status_code == 302
    reply = Browser().post("/accounts/login/", {"username": "ada", "password": PASSWORD})
    assert reply.status_code == 200  # which is no


def test_an_answer_on_the_way_is_stopped(browser, generation):
    delete(browser)
    assert cancelled() == [generation.id.hex]


def test_it_takes_the_password_and_says_before_what_goes_and_what_stays(browser, everything):
    page = browser.get("/account/delete/").text
    assert "1 chat with all of its messages" in page
    assert "1 API key; what runs with it ends" in page
    assert "What stays, and why" in page
    assert delete(browser, "wrong").status_code == 400
    assert User.objects.filter(username="ada").exists()
    assert not cancelled()


def test_the_last_superuser_stays_and_one_of_two_may_go(browser, ada, grace):
    User.objects.filter(pk=ada.pk).update(is_superuser=True, is_staff=True)
    assert "You are the last administrator" in browser.get("/account/delete/").text
    assert delete(browser).status_code == 409
    assert User.objects.filter(pk=ada.pk).exists()
    User.objects.filter(pk=grace.pk).update(is_superuser=True, is_active=False)
    assert delete(browser).status_code == 409  # nobody can sign in as her
    User.objects.filter(pk=grace.pk).update(is_active=True)
    assert delete(browser).status_code == 302
    assert not User.objects.filter(pk=ada.pk).exists()
    assert not Session.objects.filter(session_key__in=[browser.session.session_key or ""]).exists()
