"""The language of what is sent over a long-lived connection; Django's middleware sees to the pages'."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from django.http import HttpRequest
from django.utils import translation


def of_scope(scope: dict[str, Any]) -> str:
    """What the browser behind a connection with cookies wants, of those that there are: "en", "de"."""
    request = HttpRequest()
    request.COOKIES = scope.get("cookies", {})
    headers = dict(scope["headers"])
    request.META["HTTP_ACCEPT_LANGUAGE"] = headers.get(b"accept-language", b"").decode("latin-1")
    return translation.get_language_from_request(request)


def speaking(scope: dict[str, Any]) -> AbstractContextManager[Any]:
    """In which texts are translated into that language, for this task alone."""
    return translation.override(of_scope(scope))
