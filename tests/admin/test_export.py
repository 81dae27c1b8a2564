"""CSV of a list: what its filters let through, in pieces, and safe to open in a spreadsheet."""

from __future__ import annotations

import codecs
import csv
import io

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from inference.admin import export
from inference.models import OperatorAction

from .play import after, generation, park

pytestmark = pytest.mark.django_db
GENERATIONS = "/admin/inference/generation/"


def lines(reply) -> list[list[str]]:
    async def read() -> bytes:
        return b"".join([piece async for piece in reply.streaming_content])

    assert reply.is_async  # under ASGI anything else would be gathered whole before it is sent
    text = async_to_sync(read)()
    assert text.startswith(codecs.BOM_UTF8)  # without it Excel shows nobody's umlauts
    return list(csv.reader(io.StringIO(text.decode("utf-8-sig"), newline="")))


def test_it_holds_what_the_filters_let_through_newest_first(admin_client):
    old = generation(state="failed", created_at=after(-50))
    new = generation(state="failed")
    generation()
    reply = admin_client.get(f"{GENERATIONS}export/", {"state__exact": "failed"})
    header, *rows = lines(reply)
    assert header[:2] == ["id", "state"]
    assert [row[0] for row in rows] == [str(new.pk), str(old.pk)]
    assert 'filename="generations-' in reply["Content-Disposition"]
    assert "no-store" in reply["Cache-Control"]


def test_pieces_join_without_a_gap_or_a_repeat_also_at_equal_times(admin_client, monkeypatch):
    monkeypatch.setattr(export, "AT_ONCE", 2)
    made = {str(generation(created_at=after(i // 4)).pk) for i in range(11)}
    rows = lines(admin_client.get(f"{GENERATIONS}export/"))[1:]
    assert len(rows) == 11
    assert {row[0] for row in rows} == made


@pytest.mark.parametrize("evil", ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1+1"])
def test_no_text_is_a_formula_to_a_spreadsheet(evil, admin_client):
    generation(model=evil, priority=-1)
    header, row = lines(admin_client.get(f"{GENERATIONS}export/"))
    told = dict(zip(header, row, strict=True))
    assert told["model"] == "'" + evil
    assert told["priority"] == "-1"  # a number is one


def test_nor_is_what_follows_a_semicolon_where_that_ends_a_cell(admin_client):
    generation(model='a";=1+1', error="a;\t-1\nb-1; c")
    header, row = lines(admin_client.get(f"{GENERATIONS}export/"))
    told = dict(zip(header, row, strict=True))
    assert (told["model"], told["error"]) == ("a\";'=1+1", "a;'\t-1\nb-1; c")


def test_a_search_can_be_exported_too(admin_client):
    generation(user=User.objects.create_user("grace"))
    generation()
    assert len(lines(admin_client.get(f"{GENERATIONS}export/", {"q": "grace"}))) == 2


def test_parks_and_operators_acts_can_be_exported(admin_client):
    park(generation(), 2, 4)
    OperatorAction.objects.create(kind="park", by="ada", generation=generation().pk, slot=0, worker="w1")
    header, row = lines(admin_client.get("/admin/inference/preemption/export/"))
    assert dict(zip(header, row, strict=True))["waited_s"] == "2.0"
    assert len(lines(admin_client.get("/admin/inference/operatoraction/export/"))) == 2


def test_the_list_has_a_link_to_what_it_shows(admin_client):
    generation()
    page = admin_client.get(GENERATIONS, {"state__exact": "finished"}).text
    assert 'href="export/?state__exact=finished"' in page
    assert "export/" not in admin_client.get("/admin/inference/message/").text


def test_it_is_for_those_who_may_view(staff_with, client):
    assert staff_with("view_preemption").get(f"{GENERATIONS}export/").status_code == 403
    assert client.get(f"{GENERATIONS}export/").status_code == 302
