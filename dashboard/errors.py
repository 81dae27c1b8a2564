"""Errors as pages: those that Django answers without one, and those of a database or a Redis that is away."""

from __future__ import annotations

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.deprecation import MiddlewareMixin

from inference.broker.connect import AWAY

BARE = (405, 413, 429, 503)  # statuses that views answer with and no page; Django has its own for others
RETRY_AFTER = "5"  # seconds


class ErrorPages(MiddlewareMixin):
    """Gives a bare error its page when it is a person who reads it. Its headers stay."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        is_bare = isinstance(response, HttpResponse) and not response.content
        if response.status_code in BARE and is_bare and _is_for_a_person(request):
            page = render(request, f"{response.status_code}.html", status=response.status_code)
            for name in ("Allow", "Retry-After"):
                if name in response.headers:
                    page.headers[name] = response.headers[name]
            return page
        return response


def _is_for_a_person(request: HttpRequest) -> bool:
    return "text/html" in request.headers.get("Accept", "")


def server_error(request: HttpRequest) -> HttpResponse:
    """What comes of an exception. Nothing of the request is used: it may be what has failed."""
    if isinstance(sys.exception(), (OperationalError, InterfaceError, *AWAY)):
        reply = HttpResponse(render_to_string("503.html"), status=503)
        reply["Retry-After"] = RETRY_AFTER
        return reply
    return HttpResponse(render_to_string("500.html"), status=500)
