"""Signing in: one form for the chat and for the admin, with a bound on guessing."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, redirect_to_login
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from inference import address
from inference.broker import throttle
from inference.broker.connect import AWAY

logger = logging.getLogger(__name__)


class SignInForm(AuthenticationForm):
    """Django's, which also takes as long for a name that nobody has."""

    wait = 0  # seconds until the next attempt; 0: this one was looked at

    def clean(self) -> dict[str, Any]:
        if not self.cleaned_data.keys() >= {"username", "password"}:
            return super().clean()  # nothing to try
        assert self.request is not None
        # As the form cleaned it, or many spellings of one name would be many accounts here.
        account, source = self.cleaned_data["username"], address.of_request(self.request)
        try:
            self.wait = throttle.count(account, source)
        except AWAY as error:
            logger.warning("Attempts to sign in are not counted: %s", error)
        if self.wait:
            raise ValidationError("Too many attempts.", code="throttled")
        cleaned = super().clean()
        with contextlib.suppress(*AWAY):
            throttle.forget(account, source)
        return cleaned


class SignIn(LoginView):
    """The page. Too many attempts are a 429 that says when to come back."""

    form_class = SignInForm
    redirect_authenticated_user = True

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(may_sign_up=settings.BERTH.sign_up, **kwargs)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        reply = super().form_invalid(form)
        if wait := getattr(form, "wait", 0):
            reply.status_code = 429
            reply["Retry-After"] = str(wait)
        return reply


def of_admin_password(request: HttpRequest) -> HttpResponse:
    """Nor a form for another password, in which the old one could be guessed without end."""
    return HttpResponseRedirect(reverse("account_password"))


def of_admin(request: HttpRequest) -> HttpResponse:
    """The admin has no form of its own: who is signed in and not staff is told so."""
    wanted = request.GET.get("next") or reverse("admin:index")
    if not request.user.is_authenticated:
        return redirect_to_login(wanted)
    if not request.user.is_staff:
        raise PermissionDenied
    return HttpResponseRedirect(reverse("admin:index"))
