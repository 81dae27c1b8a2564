"""Errors where Django or a view answers with a status alone: a page to a person, and to a program the JSON of
the API's errors."""

from __future__ import annotations

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _
from django.views import csrf, defaults

from inference.wire import absent
from inference.wire.errors import RequestError

from .replies import error, is_for_a_person

BARE = (405, 413, 429, 503)  # statuses that views answer with and no page; Django has its own for others
WORDS = {  # for programs, in English as all that the API says
    400: "The request is not as it must be.",
    403: "This is not allowed.",
    413: "The request is too large.",
    429: "Too many requests.",
    500: "Something broke here; it was not your request.",
    503: "This can't be done now. Try again soon.",
}
NO_FORM = "This is a form of the pages, not the API: GET /openapi.json tells where to post to."


class ErrorPages(MiddlewareMixin):
    """Gives a bare error its page, or its JSON. Its headers stay."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if response.status_code not in BARE or not isinstance(response, HttpResponse) or response.content:
            return response
        if is_for_a_person(request):
            whole = render(request, f"{response.status_code}.html", status=response.status_code)
        elif response.status_code == 405:
            words = f"{request.method} is not allowed here; use {response['Allow']}."
            whole = _told(request, RequestError(405, "", words))
        else:
            whole = _told(request, RequestError(response.status_code, "", WORDS[response.status_code]))
        for name in ("Allow", "Retry-After"):
            if name in response.headers:
                whole.headers[name] = response.headers[name]
        return whole


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
    elif is_for_a_person(request):
        return defaults.bad_request(request, exception)
    else:
        return _told(request, RequestError(400, "", WORDS[400]))
    if not is_for_a_person(request):
        return error(words, status)
    return render(request, f"{status}.html", {"words": words}, status=status)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_for_a_person(request):
        return defaults.permission_denied(request, exception)
    return _told(request, RequestError(403, "", WORDS[403]))


def without_token(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without its token."""
    if is_for_a_person(request):
        return csrf.csrf_failure(request, reason)
    return _told(request, RequestError(403, "", NO_FORM))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    if is_for_a_person(request):
        return defaults.page_not_found(request, exception)
    return _told(request, absent.not_found(request.path))


def broken(request: HttpRequest) -> HttpResponse:
    if is_for_a_person(request):
        return defaults.server_error(request)
    return _told(request, RequestError(500, "", WORDS[500]))


def _told(request: HttpRequest, refusal: RequestError) -> HttpResponse:
    return JsonResponse(absent.error_of(request.path, refusal), status=refusal.status)
