"""What a page asks for when a generation has left the live picture: how it ended."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse

from inference.models import Generation

from .search import ids_that_begin

MOST = 200  # rows that a page shows


def states(request: HttpRequest) -> JsonResponse:
    """{id: [state, label]} of the generations named by `id`, as far as there are such."""
    spans = (ids_that_begin(id) for id in request.GET.getlist("id")[:MOST])
    ids = [first for first, last in filter(None, spans) if first == last]
    rows = Generation.objects.filter(pk__in=ids).only("state")
    return JsonResponse({row.id.hex: [row.state, row.get_state_display()] for row in rows})
