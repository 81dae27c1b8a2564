"""The admin: each changelist in few queries, nothing editable that would lie, a key shown once."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inference.broker import connect, occupancy
from inference.models import ApiKey, Chat, Generation, Message, OperatorAction, Preemption, UserLimits

pytestmark = pytest.mark.django_db
SECRET = "nobody but its writer should read this in a list"


@pytest.fixture
def chat(admin_user: User) -> Chat:
    return Chat.objects.create(user=admin_user, title="A walk")


@pytest.fixture
def generation(admin_user: User, chat: Chat) -> Generation:
    message = chat.add("assistant", SECRET)
    generation = Generation.objects.create(
        id=uuid.UUID("0123456789abcdef0123456789abcdef"),
        state="parked",
        api="chat",
        model="smol",
        user=admin_user,
        message=message,
        parks=1,
        priority=-1,
    )
    generation.preemptions.create(cause="pressure", cells=100, bytes=2**21, parked_at=timezone.now())
    return generation


def act(generation: Generation, **fields: Any) -> OperatorAction:
    usual: dict[str, Any] = {"kind": "park", "by": "ada", "slot": 0, "worker": "w1"}
    return OperatorAction.objects.create(generation=generation.pk, **usual | fields)


@pytest.mark.parametrize("model", ["chat", "message", "generation", "preemption", "apikey", "operatoraction"])
def test_each_changelist_answers_without_a_query_a_row(
    model, admin_client, admin_user, generation, django_assert_max_num_queries
):
    ApiKey.objects.create_key("laptop", admin_user)
    for i in range(20):
        message = Chat.objects.create(user=admin_user).add("assistant", SECRET)
        other = Generation.objects.create(user=admin_user, message=message)
        other.preemptions.create(cause="forced", parked_at=timezone.now())
        ApiKey.objects.create_key(f"key {i}", User.objects.create_user(f"user{i}"))
        act(other, by=f"user{i}")
    with django_assert_max_num_queries(16):
        response = admin_client.get(reverse(f"admin:inference_{model}_changelist"))
    assert response.status_code == 200
    assert SECRET not in response.text


@pytest.mark.parametrize(
    ("model", "query"),
    [
        ("chat", "walk"),
        ("message", "walk"),
        ("generation", "01234567-89ab"),
        ("generation", "admin"),
        ("preemption", "01234567"),
        ("apikey", "laptop"),
        ("operatoraction", "ada"),
        ("operatoraction", "01234567"),
    ],
)
def test_search_finds_the_row(model, query, admin_client, admin_user, generation):
    ApiKey.objects.create_key("laptop", admin_user)
    act(generation)
    response = admin_client.get(reverse(f"admin:inference_{model}_changelist"), {"q": query})
    assert response.context["cl"].result_count == 1


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [
        ("state__exact", "parked", 1),
        ("state__exact", "failed", 0),
        ("api", "chat", 1),
        ("model", "other", 0),
        ("priority", "high", 1),
        ("priority", "normal", 0),
        ("priority", "low", 0),
        ("priority", "nonsense", 1),
    ],
)
def test_generations_are_filtered(field, value, found, admin_client, generation):
    response = admin_client.get(reverse("admin:inference_generation_changelist"), {field: value})
    assert response.context["cl"].result_count == found


@pytest.mark.parametrize("model", [Chat, Generation, Preemption, Message, OperatorAction])
def test_what_happened_cannot_be_added_or_edited(model, admin_client, generation):
    act(generation)
    name = model._meta.model_name
    assert admin_client.get(reverse(f"admin:inference_{name}_add")).status_code == 403
    url = reverse(f"admin:inference_{name}_change", args=[model.objects.get().pk])
    page = admin_client.get(url)
    assert page.status_code == 200
    assert 'name="_save"' not in page.text
    assert admin_client.post(url, {"state": "failed"}).status_code == 403


def test_a_generation_shows_its_parks(admin_client, generation):
    page = admin_client.get(reverse("admin:inference_generation_change", args=[generation.pk]))
    assert "Pressure" in page.text


def test_what_an_operator_did_cannot_be_deleted(admin_client, generation):
    url = reverse("admin:inference_operatoraction_delete", args=[act(generation).pk])
    assert admin_client.post(url, {"post": "yes"}).status_code == 403


def test_what_an_operator_did_outlives_who_did_it_and_to_what(admin_client, generation):
    action = act(generation, user=User.objects.create_user("ada"))
    User.objects.get(username="ada").delete()
    generation.delete()
    action.refresh_from_db()
    assert (action.by, action.user) == ("ada", None)
    assert "01234567" in admin_client.get(reverse("admin:inference_operatoraction_changelist")).text


def test_the_limits_of_keys_and_of_people_can_be_edited(admin_client, admin_user):
    row, _ = ApiKey.objects.create_key("laptop", admin_user)
    url = reverse("admin:inference_apikey_change", args=[row.pk])
    admin_client.post(url, {"name": "laptop", "max_priority": "-1", "max_concurrent": 2, "max_output": 9})
    row.refresh_from_db()
    assert (row.ceiling, row.max_concurrent, row.max_output) == (-1, 2, 9)
    refused = admin_client.post(url, {"name": "laptop", "max_priority": "-101"})
    assert "greater than or equal to -100" in refused.text
    page = reverse("admin:auth_user_change", args=[admin_user.pk])
    fields = {f.name: f.value() for f in admin_client.get(page).context["adminform"].form if f.value()}
    inline = {
        "limits-TOTAL_FORMS": 1,
        "limits-INITIAL_FORMS": 0,
        "limits-0-max_priority": 1,
        "limits-0-max_concurrent": 3,
    }
    dates = {
        f"{name}_{i}": part
        for name in ("last_login", "date_joined")
        for i, part in enumerate(("2030-01-01", "00:00:00"))
    }
    answer = admin_client.post(page, fields | inline | dates | {"limits-0-user": admin_user.pk})
    assert answer.status_code == 302
    user = User.objects.get(pk=admin_user.pk)
    assert (UserLimits.ceiling(user), UserLimits.concurrent(user)) == (1, 3)


def test_a_chat_leads_to_its_messages(admin_client, chat):
    chat.add("user", SECRET)
    Chat.objects.create(user=chat.user).add("user", "elsewhere")
    page = admin_client.get(reverse("admin:inference_chat_changelist"))
    link = re.search(rf'href="([^"]*chat__id__exact={chat.pk})"', page.text)
    assert link is not None
    assert admin_client.get(link[1]).context["cl"].result_count == 1


def test_editing_a_key_keeps_the_key(admin_client, admin_user):
    row, plain = ApiKey.objects.create_key("laptop", admin_user)
    admin_client.post(reverse("admin:inference_apikey_change", args=[row.pk]), {"name": "phone"})
    changed = ApiKey.objects.with_key(plain).get()
    assert (changed.name, changed.notices) == ("phone", False)


def test_a_revoked_key_stays_with_the_time_of_its_first_revocation(admin_client, admin_user):
    row, _ = ApiKey.objects.create_key("laptop", admin_user)
    url = reverse("admin:inference_apikey_changelist")
    admin_client.post(url, {"action": "revoke", "_selected_action": [row.pk]})
    row.refresh_from_db()
    first = row.revoked_at
    assert first is not None
    admin_client.post(url, {"action": "revoke", "_selected_action": [row.pk]})
    row.refresh_from_db()
    assert row.revoked_at == first


# --- the panel on the index -----------------------------------------------------------------------


@pytest.fixture
def staff_client(client: Client) -> Client:
    """Signed in as one who may enter the admin and nothing more."""
    client.force_login(User.objects.create_user("operator", is_staff=True))
    return client


def show(**changes: Any) -> None:
    slot = {"id": 0, "state": "decode", "generation": "aa", "owner": "ada", "cells": 200, "since": 0.0}
    chat = {"generation": "bb", "owner": "<grace>", "slot": 1, "cells": 150, "bytes": 9, "since": time.time()}
    picture = {
        "worker": "w1",
        "at": time.time(),
        "model": {"alias": "smol"},
        "pool": {"cells": 512, "used": 350},
        "slots": [slot],
        "parked": [chat],
        "queue": [],
        **changes,
    }

    async def put() -> None:
        await occupancy.put(picture)
        await connect.close()

    asyncio.run(put())


def test_the_panel_shows_the_occupancy_to_all_staff(staff_client):
    connect.sync_client().flushdb()
    show()
    page = staff_client.get(reverse("admin:index")).text
    assert '<progress max="512" value="350"' in page
    assert 'class="berth-badge berth-decode"' in page
    assert "&lt;grace&gt;" in page
    assert "No worker is running" in page.split("hidden>")[1].split("</p>")[0]


def test_the_panel_says_that_no_worker_is_running(staff_client):
    connect.sync_client().flushdb()
    page = staff_client.get(reverse("admin:index")).text
    assert '<p class="occupancy-note">' in page
    assert "No worker is running." in page


def test_the_index_opens_while_redis_is_away(staff_client, monkeypatch, tmp_path):
    monkeypatch.setenv("REDIS_URL", f"unix://{tmp_path / 'nobody.sock'}")
    connect.sync_client.cache_clear()
    try:
        page = staff_client.get(reverse("admin:index"))
    finally:
        connect.sync_client.cache_clear()
    assert page.status_code == 200
    assert "Redis does not answer" in page.text


def test_the_index_needs_no_inline_script_or_style(staff_client):
    show()
    page = staff_client.get(reverse("admin:index")).text
    panel = page[page.index('<section id="occupancy"') : page.index("</section>")]
    assert "style=" not in panel
    assert "<script" not in panel
    assert re.search(r'<script type="module" src="[^"]+/dashboard/admin.js">', page)


def test_the_index_is_closed_to_others(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("ada"))
    assert client.get(reverse("admin:index")).status_code == 302
