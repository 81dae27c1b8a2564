"""What a browser is told that our pages may do. Django's own middleware adds the headers that it knows."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import sync_and_async_middleware

# Nothing inline and nothing of other sites: what a model writes can neither run nor fetch anything.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)
# Our own scripts turn text into markup in one place, the sanitiser, and take two scripts by their addresses,
# the workers that colour code and show the offline page. Those of Django's admin do it anywhere.
ONE_SANITISER = "; require-trusted-types-for 'script'; trusted-types dompurify highlighter offline"
ADMIN = "/admin/"
UNUSED = "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"


@sync_and_async_middleware
def browser_policies(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:
    """Outermost, so that error pages and static files have the headers too."""
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponse:
            return _with_policies(request, await get_response(request))

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponse:
        return _with_policies(request, get_response(request))

    return synchronous


def _with_policies(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    if settings.DEBUG and response.status_code in (404, 500):
        return response  # Django's page for a developer has inline styles
    policy = POLICY if request.path.startswith(ADMIN) else POLICY + ONE_SANITISER
    response.headers.setdefault("Content-Security-Policy", policy)
    response.headers.setdefault("Permissions-Policy", UNUSED)
    return response
