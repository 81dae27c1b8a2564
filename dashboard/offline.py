"""What a browser keeps for when it can't reach the server: one page, and the script that shows it."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.translation import get_language
from django.views.decorators.http import require_safe

FILES = ("dashboard/app.css", "dashboard/icon.svg", "dashboard/offline_page.js")


@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """The same for everybody: it is kept for whoever uses this browser next."""
    return HttpResponse(render_to_string("offline.html"))


@require_safe
def worker(request: HttpRequest) -> HttpResponse:
    """The service worker. It differs when what it keeps does, so that a browser then takes the new one."""
    script = render_to_string("dashboard/sw.js", {"files": FILES, "version": _version(get_language())})
    return HttpResponse(
        script, content_type="text/javascript; charset=utf-8", headers={"Cache-Control": "no-cache"}
    )


@cache
def _version(language: str | None) -> str:
    """A digest of what is kept; the page is in the language of the request."""
    digest = hashlib.sha256(render_to_string("offline.html").encode())
    for name in FILES:
        path = finders.find(name)
        assert path
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()[:12]
