"""How views answer: a write in JSON, an error as {"error": "what to do"}."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.forms import BaseForm
from django.http import HttpRequest, JsonResponse

from inference.http import RETRY_AFTER


class Request(HttpRequest):
    """From a person who is signed in."""

    user: User


def is_for_a_person(request: HttpRequest) -> bool:
    """Whether a page is asked for. Programs don't, and nor do the scripts of our pages."""
    return "text/html" in request.headers.get("Accept", "")


def error(message: str, status: int) -> JsonResponse:
    reply = JsonResponse({"error": message}, status=status)
    if status in RETRY_AFTER:
        reply["Retry-After"] = RETRY_AFTER[status].decode()
    return reply


def refusal(form: BaseForm) -> JsonResponse:
    """400: what is wrong with each field, and all of it in one text."""
    fields = {name: str(errors[0]) for name, errors in form.errors.items()}
    return JsonResponse({"error": " ".join(fields.values()), "fields": fields}, status=400)
