"""How the database goes about the lists: along an index, never through the whole table, never sorting it."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from inference.models import ApiKey

from .play import generation, park

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="reads SQLite's query plans"),
]
GENERATIONS, PARKS, MESSAGES = ("/admin/inference/generation/", "/admin/inference/preemption/",
                                "/admin/inference/message/")  # fmt: skip
LARGE = re.compile(r"inference_(generation|preemption|message)\b")
DAY = {"created_at__year": "2026", "created_at__month": "3", "created_at__day": "14"}
DAY_OF_PARKS = {name.replace("created", "parked"): value for name, value in DAY.items()}


@pytest.fixture(autouse=True)
def rows(db, monkeypatch) -> None:
    """Two of each, on two pages: a list of one page has no LIMIT."""
    monkeypatch.setattr("inference.admin.base.LargeTable.list_per_page", 1)
    key, _ = ApiKey.objects.create_key("laptop")
    ada = User.objects.create_user("ada")
    chat = ada.chats.create(title="a walk")
    for _ in range(2):
        one = generation(user=ada, api_key=key, priority=-1, park_cause="pressure", park_kind="swap")
        park(one, 2, 3)
        chat.add("user", "x")


def plans(client, url: str, query: dict[str, str]) -> list[tuple[str, list[str]]]:
    """Each query that reads a large table, with the steps of its plan."""
    with CaptureQueriesContext(connection) as captured:
        assert client.get(url, query).status_code == 200
    asked = [q["sql"] for q in captured.captured_queries if LARGE.search(q["sql"])]
    assert asked
    found = []
    for sql in asked:
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}")
            found.append((sql, [detail for *_, detail in cursor.fetchall()]))
    return found


def is_quick(step: str, may_scan: bool) -> bool:
    """`may_scan`: its index may be walked from one end, which a LIMIT then stops."""
    if "TEMP B-TREE" in step:
        return "LAST TERM" in step or "RIGHT PART" in step
    if step.startswith("SCAN inference_"):
        return may_scan and "INDEX" in step
    return True


@pytest.mark.parametrize("url", [GENERATIONS, PARKS, MESSAGES])
def test_a_list_is_read_from_the_end_of_an_index(url, admin_client):
    for sql, steps in plans(admin_client, url, {}):
        assert all(is_quick(step, may_scan="LIMIT" in sql) for step in steps), (sql, steps)


def the_lists_own(found: list[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """Without the looks for the choices of filters and dates, which know nothing of what is filtered."""
    return [(sql, steps) for sql, steps in found if "WHERE" in sql and "RECURSIVE" not in sql]


@pytest.mark.parametrize(
    "query",
    [
        {"state__exact": "finished"},
        {"worker": "w1"},
        {"model": "smol"},
        {"api": "chat"},
        {"api_key": "1"},
        {"api_key": "none"},
        {"user__id__exact": "1"},
        {"priority": "high"},
        {"park_cause": "pressure"},
        {"park_kind": "swap"},
        {"finish_reason__exact": "stop"},
        DAY,
    ],
    ids=lambda query: next(iter(query)),
)
@pytest.mark.parametrize("day", [{}, DAY], ids=["ever", "day"])
def test_a_filter_of_generations_has_its_index_in_the_order_of_the_list(query, day, admin_client):
    found = the_lists_own(plans(admin_client, GENERATIONS, query | day))
    assert len(found) >= 2  # its rows and their number
    for sql, steps in found:
        assert all(is_quick(step, may_scan=False) for step in steps), (sql, steps)


@pytest.mark.parametrize(
    "query",
    [
        {"cause__exact": "pressure"},
        {"kind__exact": "swap"},
        {"outcome": "open"},
        {"outcome": "ended"},
        DAY_OF_PARKS,
    ],
    ids=lambda query: next(iter(query)),
)
def test_a_filter_of_parks_has_its_index_in_the_order_of_the_list(query, admin_client):
    found = the_lists_own(plans(admin_client, PARKS, query))
    assert len(found) >= 2
    for sql, steps in found:
        # Who is parked now are few: an index of their own.
        assert all(is_quick(step, may_scan="not_resumed" in step) for step in steps), (sql, steps)


@pytest.mark.parametrize("term", ["ada", "laptop", "01234567"])
def test_a_search_never_reads_the_whole_table(term, admin_client):
    for sql, steps in the_lists_own(plans(admin_client, GENERATIONS, {"q": term})):
        assert not any(step.startswith("SCAN inference_generation") for step in steps), (sql, steps)


def test_the_choices_of_a_filter_are_looked_up_one_by_one(admin_client):
    found = [(sql, steps) for sql, steps in plans(admin_client, GENERATIONS, {}) if "RECURSIVE" in sql]
    assert len(found) == 6
    for sql, steps in found:
        assert not any(step.startswith("SCAN inference_generation") for step in steps), (sql, steps)
