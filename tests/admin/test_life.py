"""A generation's life: the spans from its birth to its end, drawn and in words."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from django.urls import reverse

from inference.admin.timeline import LEAST, WIDTH, life_of
from inference.models import OperatorAction

from .play import after, generation, park

pytestmark = pytest.mark.django_db


def spans(of, *parks, now=10.0):
    return [(s.kind, s.begin, s.end) for s in life_of(of, parks, after(now)).spans]


def test_it_is_queued_then_reads_its_prompt_then_writes():
    assert spans(generation()) == [("queued", 0, 1), ("prefill", 1, 3), ("decode", 3, 10)]


def test_parks_lie_where_they_were_and_the_rest_goes_on_around_them():
    one = generation()
    parks = [park(one, 6, 8), park(one, 2, 2.5)]
    assert spans(one, *parks) == [
        ("queued", 0, 1),
        ("prefill", 1, 2),
        ("parked", 2, 2.5),
        ("prefill", 2.5, 3),
        ("decode", 3, 6),
        ("parked", 6, 8),
        ("decode", 8, 10),
    ]


def test_spans_follow_each_other_without_gap_or_overlap():
    one = generation()
    parks = [park(one, 0.5, 2), park(one, 1.5, 4), park(one, 4, 4), park(one, 9, None, waited_s=5)]
    found = spans(one, *parks)
    assert (found[0][1], found[-1][2]) == (0, 10)
    assert all(earlier[2] == later[1] for earlier, later in pairwise(found))


def test_what_goes_on_lasts_until_now():
    waiting = generation(state="queued", started_at=None, ttft_s=None, finished_at=None)
    [span] = life_of(waiting, [], after(7)).spans
    assert (span.kind, span.end, span.is_open) == ("queued", 7, True)
    running = generation(state="running", ttft_s=None, finished_at=None)
    life = life_of(running, [park(running, 2, None)], after(7))
    assert [(s.kind, s.end, s.is_open) for s in life.spans] == [
        ("queued", 1, False),
        ("running", 2, False),
        ("parked", 7, True),
    ]


def test_what_ended_before_it_started_was_queued_all_along():
    assert spans(generation(state="cancelled", started_at=None, ttft_s=None)) == [("queued", 0, 10)]


def test_the_drawing_has_each_span_inside_and_wide_enough_to_be_seen():
    one = generation()
    parks = [park(one, 5, 5.001), park(one, 9.9995, 10)]
    drawing = life_of(one, parks, after(10)).drawing()
    for _, x, width in drawing:
        assert float(width) >= LEAST
        assert 0 <= float(x) <= WIDTH - float(width)
    assert [span.kind for span, _, _ in drawing][-2:] == [
        "parked",
        "parked",
    ]  # not hidden by their neighbours


def test_an_instant_can_be_drawn():
    one = generation(finished_at=after(0), started_at=None, state="failed", ttft_s=None)
    assert life_of(one, [], after(0)).drawing() == []


def test_its_page_tells_each_park_in_words_with_cells_bytes_and_wait(admin_client):
    one = generation(parks=1)
    park(one, 6, 8, cause="rotation", kind="recompute", cells=77)
    page = admin_client.get(reverse("admin:inference_generation_change", args=[one.pk])).text
    rows = re.findall(r"<tr>(.*?)</tr>", page[page.index('<section id="life"') :], re.DOTALL)
    [told] = [re.sub(r"<[^>]+>|\s+", " ", row).split() for row in rows if "Parked" in row]
    assert " ".join(told) == "6.0 s Parked 2.0 s Rotation Recompute 1 77 3.0 MiB"


def test_its_page_draws_without_inline_style_or_script(admin_client):
    one = generation(parks=1)
    park(one, 6, 8)
    page = admin_client.get(reverse("admin:inference_generation_change", args=[one.pk])).text
    life = page[page.index('<section id="life"') : page.index("</section>")]
    assert life.count("<rect ") == 5
    assert "style=" not in page
    assert not re.search(r"<script(?![^>]* src=)", page)


def test_what_operators_did_to_it_is_told_to_who_may_see_that(admin_client, staff_with):
    one = generation()
    OperatorAction.objects.create(kind="park", by="grace", generation=one.pk, slot=0, worker="w1")
    url = reverse("admin:inference_generation_change", args=[one.pk])
    assert "grace: Park and hold" in admin_client.get(url).text
    assert "grace: Park and hold" not in staff_with("view_generation").get(url).text
