"""The account page and what is done there. A wrong form comes back as a 400, with nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout, update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from dashboard.replies import Request
from inference.messages import priority_name
from inference.models import ApiKey, UserLimits

from . import bounds, usage
from .forms import ChangePasswordForm, EmailForm, KeyForm
from .passwords import Bounded, Confirmed

READ_OR_SEND = require_http_methods(["GET", "HEAD", "POST"])


def _private(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """A form that takes the password of who is signed in. No cache keeps it, no error report shows it."""
    return sensitive_post_parameters()(login_required(never_cache(READ_OR_SEND(view))))


def answer(request: HttpRequest, template: str, form: Bounded, **context: Any) -> HttpResponse:
    """A page with a form: 200 when it is new, 400 when it was not right, 429 when it came too often."""
    for name in form.errors:
        if name in form.fields:  # the first that must be put right
            form.fields[name].widget.attrs["autofocus"] = True
            break
    status = 429 if form.wait else 400 if form.errors else 200
    reply = render(request, template, {"section": "account", "form": form, **context}, status=status)
    if form.wait:
        reply["Retry-After"] = str(form.wait)
    return reply


def overview(request: Request, form: KeyForm | None = None) -> HttpResponse:
    """The whole page, with the form for a key as it was filled in."""
    user = request.user
    used = usage.of(user)
    keys = list(
        ApiKey.objects.filter(owner=user).order_by("revoked_at", "-created_at", "-pk")[: 2 * bounds.KEYS]
    )
    for key in keys:
        key.used = used.of_key(key.pk)  # type: ignore[attr-defined]
    own = UserLimits.concurrent(user)
    is_context = settings.BERTH.max_output == -1 and not settings.BERTH.context_shift
    context = {
        "usage": used,
        "keys": keys,
        "most_keys": bounds.KEYS,
        "at_once": settings.BERTH.max_per_user if own is None else own,
        "longest": -1 if is_context else settings.BERTH.longest,
        "priority": _(priority_name(UserLimits.ceiling(user))),
    }
    return answer(request, "dashboard/account.html", form or KeyForm(request), **context)


@login_required
@never_cache
@require_safe
def account(request: Request) -> HttpResponse:
    """Use, limits, keys, and the ways to everything else."""
    return overview(request)


@_private
def password(request: Request) -> HttpResponse:
    """Another password. Everybody else who is signed in with the old one is signed out."""
    said = _("Your password is changed, and you are signed out everywhere else.")
    return _store(request, ChangePasswordForm, "new_password", said, "dashboard/account_password.html")


@_private
def sign_out_elsewhere(request: Request) -> HttpResponse:
    """End all sessions but this one. They hang on what is stored of the password, so that is made anew."""
    said = _("You are signed out everywhere else.")
    return _store(request, Confirmed, "password", said, "dashboard/account_sessions.html")


def _store(request: Request, kind: type[Confirmed], field: str, said: str, template: str) -> HttpResponse:
    """Store the password in this field of a form once it is right. This session goes on; no other does."""
    form = kind(request, request.POST or None)
    if request.method != "POST" or not form.is_valid():
        return answer(request, template, form)
    user = request.user
    user.set_password(form.cleaned_data[field])
    user.save(update_fields=["password"])
    update_session_auth_hash(request, user)
    messages.success(request, said)
    return redirect("account")


@_private
def email(request: Request) -> HttpResponse:
    """Another e-mail address, or none. It takes the password: a link for another one goes there."""
    form = EmailForm(request, request.POST or None, initial={"email": request.user.email})
    if request.method == "POST" and form.is_valid():
        user = request.user
        user.email = User.objects.normalize_email(form.cleaned_data["email"])
        user.save(update_fields=["email"])
        messages.success(
            request, _("Your e-mail address is changed.") if user.email else _("Your e-mail address is gone.")
        )
        return redirect("account")
    return answer(request, "dashboard/account_email.html", form)


def _is_last_superuser(user: User) -> bool:
    others = User.objects.select_for_update().filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    return user.is_superuser and not list(others)


@_private
def delete(request: Request) -> HttpResponse:
    """Remove the account and what is its own. What is on the way is stopped (`inference.shut_out`)."""
    user = request.user
    form = Confirmed(request, request.POST or None)
    is_valid = request.method == "POST" and form.is_valid()
    with transaction.atomic():
        is_last = _is_last_superuser(user)
        if is_valid and not is_last:
            user.delete()
    if is_valid and not is_last:
        logout(request)
        return redirect("account_deleted")
    reply = answer(
        request,
        "dashboard/account_delete.html",
        form,
        is_last=is_last,
        n_chats=user.chats.count(),
        n_keys=user.api_keys.count(),
    )
    if is_valid:
        reply.status_code = 409
    return reply


@require_safe
def deleted(request: HttpRequest) -> HttpResponse:
    return render(request, "dashboard/account_deleted.html")
