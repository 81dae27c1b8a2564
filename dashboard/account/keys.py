"""One's own API keys."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from dashboard.replies import Request
from inference.models import ApiKey

from . import bounds
from .forms import KeyForm
from .views import READ_OR_SEND, overview


@login_required
@never_cache
@require_POST
def create(request: Request) -> HttpResponse:
    """A new key. It is in this answer and nowhere else."""
    form = KeyForm(request, request.POST)
    if form.is_valid():
        try:
            key, plain = _make(form, request.user)
        except ValidationError as refused:
            form.add_error(None, refused)
        else:
            return render(
                request,
                "dashboard/account_key.html",
                {"section": "account", "key": key, "plain": plain},
                status=201,
            )
    return overview(request, form)


def _make(form: KeyForm, user: User) -> tuple[ApiKey, str]:
    """Raises ValidationError when the person has as many as there may be, or makes too many."""
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)  # two at once would both find room
        if ApiKey.objects.filter(owner=user, revoked_at=None).count() >= bounds.KEYS:
            message = _("You have %(n)d keys, and no more are allowed. Revoke one that you don't need.")
            raise ValidationError(message, params={"n": bounds.KEYS})
        form.hold_back(bounds.wait("keys", str(user.pk), bounds.KEYS_MADE, bounds.HOUR))
        found = form.cleaned_data
        return ApiKey.objects.create_key(found["name"], user, expires_at=found["lifetime"])


@login_required
@never_cache
@READ_OR_SEND
def revoke(request: Request, pk: int) -> HttpResponse:
    """Ask, then end a key; its running streams end at once."""
    key = get_object_or_404(ApiKey, pk=pk, owner=request.user)
    if request.method != "POST" and key.revoked_at is None:
        return render(request, "dashboard/account_revoke.html", {"section": "account", "key": key})
    if request.method == "POST" and key.revoked_at is None:
        key.revoked_at = timezone.now()
        key.save(update_fields=["revoked_at"])
        messages.success(request, _("The key “%(name)s” is revoked.") % {"name": key.name})
    return redirect("account")
