"""Pages while the database is away: 503 and what to do, instead of "something broke"."""

from __future__ import annotations

import logging
from collections.abc import Callable

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext_lazy as _

from .replies import is_for_a_person

logger = logging.getLogger(__name__)

RETRY_AFTER = {"Retry-After": "5"}  # seconds
MESSAGE = _("The database can't be reached. Your text is still here; try again in a moment.")


class DatabaseAway:
    """Middleware. A view that only reads or writes rows has changed nothing when they can't be reached."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, OperationalError | InterfaceError):
            return None
        logger.warning("The database failed %s: %s", request.path, exception)
        if is_for_a_person(request):
            return HttpResponse(render_to_string("503.html"), status=503, headers=RETRY_AFTER)
        return JsonResponse({"error": str(MESSAGE)}, status=503, headers=RETRY_AFTER)
