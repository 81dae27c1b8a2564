"""Errors as pages, where Django or a view answers with a status alone."""

from __future__ import annotations

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _
from django.views import defaults

from .replies import error

BARE = (405, 413, 429, 503)  # statuses that views answer with and no page; Django has its own for others


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


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """What Django calls a bad request. A form that is too large is a 413."""
    if isinstance(exception, RequestDataTooBig):
        status = 413
        words = _("What you sent is larger than this server takes. Nothing of it has been kept.")
    elif isinstance(exception, TooManyFieldsSent | TooManyFilesSent):
        status, words = (
            400,
            _("The form has more fields than this server takes. Nothing of it has been kept."),
        )
    else:
        return defaults.bad_request(request, exception)
    if not _is_for_a_person(request):
        return error(words, status)
    return render(request, f"{status}.html", {"words": words}, status=status)


def _is_for_a_person(request: HttpRequest) -> bool:
    return "text/html" in request.headers.get("Accept", "")
