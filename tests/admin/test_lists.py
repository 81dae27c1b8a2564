"""Lists of millions: what is counted, found and offered without reading all of them."""

from __future__ import annotations

import re
import uuid

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from inference.admin import paging
from inference.admin.filters import distinct
from inference.models import ApiKey, Generation

from .play import after, generation, park

pytestmark = pytest.mark.django_db
GENERATIONS, PARKS = "/admin/inference/generation/", "/admin/inference/preemption/"


def found(client, url, **query):
    return client.get(url, query).context["cl"]


def test_a_short_list_is_counted(admin_client):
    for _ in range(3):
        generation()
    page = admin_client.get(GENERATIONS)
    assert page.context["cl"].result_count == 3
    assert "3 generations" in page.text


def test_a_long_list_is_counted_up_to_a_bound_and_says_so(admin_client, monkeypatch):
    monkeypatch.setattr(paging, "CAP", 2)
    for _ in range(4):
        generation()
    page = admin_client.get(GENERATIONS)
    assert page.context["cl"].result_count == 2
    assert "more than 2 generations" in page.text


def test_the_columns_of_a_long_list_are_not_sorted_by(admin_client):
    generation()
    page = admin_client.get(GENERATIONS)
    assert "sortable" not in page.text
    assert admin_client.get(GENERATIONS, {"o": "9"}).context["cl"].result_count == 1


@pytest.mark.parametrize("query", [{"all": ""}, {"_facets": "True"}])
def test_all_rows_on_one_page_and_counts_of_all_filters_are_not_to_be_had(query, admin_client, monkeypatch):
    monkeypatch.setattr("inference.admin.generations.GenerationAdmin.list_per_page", 1)
    generation()
    generation()
    changelist = found(admin_client, GENERATIONS, **query)
    assert len(changelist.result_list) == 1
    assert not changelist.add_facets


# --- dates ----------------------------------------------------------------------------------------


def titles(client, **query):
    return [choice.title for choice in found(client, GENERATIONS, **query).periods()[1]]


def test_dates_lead_from_years_over_months_to_days_that_the_table_spans(admin_client):
    assert titles(admin_client) == []
    generation(created_at=after(0).replace(year=2024, month=11, day=30))
    generation(created_at=after(0).replace(year=2026, month=2, day=2))
    assert titles(admin_client) == ["2024", "2025", "2026"]
    assert titles(admin_client, created_at__year="2024") == ["November 2024", "December 2024"]
    assert titles(admin_client, created_at__year="2026") == ["January 2026", "February 2026"]
    days = titles(admin_client, created_at__year="2026", created_at__month="2")
    assert days == ["February 1", "February 2"]
    day = {"created_at__year": "2026", "created_at__month": "2", "created_at__day": "2"}
    assert titles(admin_client, **day) == ["February 2"]
    assert found(admin_client, GENERATIONS, **day).result_count == 1


def test_dates_begin_where_there_is_a_choice(admin_client):
    generation(created_at=after(0).replace(day=3))
    generation(created_at=after(0).replace(day=5))
    assert titles(admin_client) == ["March 3", "March 4", "March 5"]


def test_the_links_of_dates_keep_the_other_filters(admin_client):
    generation()
    back, [choice] = found(admin_client, GENERATIONS, state__exact="finished").periods()
    assert back is not None
    assert "state__exact=finished" in back.link
    assert "state__exact=finished" in choice.link
    assert admin_client.get(GENERATIONS + choice.link).context["cl"].result_count == 1


@pytest.mark.parametrize("year", ["x", "0", "99999"])
def test_a_date_that_is_none_is_refused_calmly(year, admin_client):
    generation()
    reply = admin_client.get(GENERATIONS, {"created_at__year": year}, follow=True)
    assert reply.status_code in (200, 400)


# --- filters --------------------------------------------------------------------------------------


def test_the_values_of_a_column_are_found_each_once():
    for model in ("b", "a", "b", "c", ""):
        generation(model=model)
    assert distinct(Generation, "model") == ["", "a", "b", "c"]


@pytest.mark.parametrize(
    ("query", "n"),
    [
        ({"worker": "w1"}, 1),
        ({"worker": "w2"}, 1),
        ({"worker": "w3"}, 0),
        ({"model": "smol"}, 2),
        ({"api": "chat"}, 2),
        ({"park_cause": "hand"}, 1),
        ({"park_cause": "pressure"}, 0),
        ({"park_kind": "recompute"}, 1),
        ({"state__exact": "finished", "worker": "w2"}, 1),
        ({"finish_reason__exact": "length"}, 0),
        ({"priority": "-7"}, 1),
        ({"priority": "99999999999999999999"}, 0),
        ({"priority": "9" * 5000}, 2),
        ({"api_key": "none"}, 1),
        ({"api_key": "9999999999"}, 0),
        ({"api_key": "99999999999999999999"}, 2),
        ({"api_key": "nonsense"}, 2),
    ],
)
def test_generations_are_filtered(query, n, admin_client):
    key, _ = ApiKey.objects.create_key("laptop")
    generation(worker="w2", park_cause="hand", park_kind="recompute", parks=1)
    generation(api_key=key, priority=-7)
    assert found(admin_client, GENERATIONS, **query).result_count == n


def test_a_key_and_a_person_lead_to_their_generations(admin_client, admin_user):
    key, _ = ApiKey.objects.create_key("laptop", admin_user)
    generation(api_key=key)
    generation(user=admin_user)
    generation()
    for page in (
        reverse("admin:inference_apikey_change", args=[key.pk]),
        reverse("admin:auth_user_change", args=[admin_user.pk]),
    ):
        [link] = re.findall(r'href="(/admin/inference/generation/\?[^"]+)"', admin_client.get(page).text)
        assert admin_client.get(link).context["cl"].result_count == 1


def test_a_generation_leads_to_its_chat_its_person_its_key_and_its_worker(admin_client, admin_user):
    key, _ = ApiKey.objects.create_key("laptop", admin_user)
    chat = admin_user.chats.create(title="a secret title")
    message = chat.add("assistant")
    one = generation(user=admin_user, api_key=key, message=message)
    page = admin_client.get(reverse("admin:inference_generation_change", args=[one.pk])).text
    for name, row in (("inference_chat", chat), ("auth_user", admin_user), ("inference_apikey", key)):
        assert f'href="{reverse(f"admin:{name}_change", args=[row.pk])}"' in page
    assert "?worker=w1" in page
    assert "a secret title" not in page


@pytest.mark.parametrize(("outcome", "n"), [("open", 1), ("resumed", 2), ("ended", 3), ("nonsense", 6)])
def test_parks_are_filtered_by_what_became_of_them(outcome, n, admin_client):
    one = generation()
    for i in range(6):
        park(one, i, 7 if i in (1, 2) else None, **({"waited_s": 1.0} if i > 2 else {}))
    assert found(admin_client, PARKS, outcome=outcome).result_count == n


# --- search ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("term", "n"),
    [
        ("ada", 1),  # a name, though its letters are hex digits
        ("ADA", 1),
        ("laptop", 1),
        ("01234567", 1),
        ("01234567-89ab", 1),
        ("0123456789abcdef0123456789abcdef", 1),
        ("012", 0),  # too short to be an id
        ("nobody", 0),
        (" ada ", 1),
        ("%", 0),
    ],
)
def test_generations_are_found_by_id_person_and_key(term, n, admin_client):
    key, _ = ApiKey.objects.create_key("my laptop")
    generation(id=uuid.UUID("0123456789abcdef0123456789abcdef"))
    generation(user=User.objects.create_user("ada"))
    generation(api_key=key)
    changelist = found(admin_client, GENERATIONS, q=term)
    assert changelist.result_count == n


def test_a_search_stays_within_the_filters(admin_client):
    ada = User.objects.create_user("ada")
    generation(user=ada)
    generation(user=ada, state="failed")
    assert found(admin_client, GENERATIONS, q="ada", state__exact="failed").result_count == 1
