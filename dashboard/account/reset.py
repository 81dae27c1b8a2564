"""A forgotten password: a link by e-mail, for whoever has the mailbox.

The answer is the same, and as quick, whether anybody has the address: looking and sending happen after it.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.contrib.auth.views import INTERNAL_RESET_SESSION_TOKEN, PasswordResetConfirmView
from django.core.mail import send_mail
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse, reverse_lazy
from django.utils import translation
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from . import bounds
from .forms import ResetForm
from .passwords import NewPassword
from .views import READ_OR_SEND, answer

logger = logging.getLogger(__name__)

MOST_ACCOUNTS = 5  # with one address, that are each sent a link
mailer = ThreadPoolExecutor(1, "mailer")


def link(user: User, base: str) -> str:
    """Where this person can choose another password, once and for a day. `base`: scheme and host."""
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    token = default_token_generator.make_token(user)
    return base + reverse("password_reset_confirm", args=[uid, token])


def base_of(request: HttpRequest) -> str:
    """What a link begins with; "" when only the client says so: whoever asks could choose where it leads."""
    if settings.PUBLIC_URL:
        return str(settings.PUBLIC_URL)
    host = request.get_host()  # of ALLOWED_HOSTS, or it raises
    is_any = any(allowed.startswith(("*", ".")) for allowed in settings.ALLOWED_HOSTS)
    return "" if is_any else f"{request.scheme}://{host}"


@never_cache
@READ_OR_SEND
def ask(request: HttpRequest) -> HttpResponse:
    """Ask for a link."""
    base = base_of(request)
    if not (settings.HAS_EMAIL and base):
        status = 403 if request.method == "POST" else 200
        return render(request, "registration/password_reset_form.html", {"is_closed": True}, status=status)
    form = ResetForm(request, request.POST or None)
    if request.method == "POST" and form.is_valid():
        mailer.submit(_send, form.cleaned_data["email"], base, translation.get_language())
        return redirect("password_reset_done")
    return answer(request, "registration/password_reset_form.html", form)


@never_cache
def asked(request: HttpRequest) -> HttpResponse:
    return render(request, "registration/password_reset_done.html")


def _send(email: str, base: str, language: str) -> None:
    """Links to the people of this address, if there are any. In the mailer's thread."""
    try:
        if bounds.wait("mail", email.casefold(), bounds.MAILS, bounds.HOUR):
            return
        people = User.objects.filter(email__iexact=email, is_active=True)[:MOST_ACCOUNTS]
        with translation.override(language):
            for user in people:
                words = {"user": user, "link": link(user, base)}
                subject = _("Reset your Berth password")
                send_mail(
                    subject,
                    render_to_string("registration/password_reset_email.txt", words),
                    None,
                    [user.email],
                )
    except Exception:  # the mail server's, the database's
        logger.exception("A link for a password could not be sent")
    finally:
        close_old_connections()


class ResetPasswordForm(NewPassword):
    """The new password of who came by a link."""

    def __init__(self, user: User, request: HttpRequest, *args: object, **kwargs: object) -> None:
        self._user = user
        super().__init__(request, *args, **kwargs)

    def user(self) -> User:
        return self._user

    def save(self) -> User:
        """Every session of the old password ends."""
        self._user.set_password(self.cleaned_data["new_password"])
        self._user.save(update_fields=["password"])
        return self._user


class Choose(PasswordResetConfirmView):
    """Where a link leads. Django's takes the token out of the address before it shows a page."""

    form_class = ResetPasswordForm  # type: ignore[assignment]
    template_name = "registration/password_reset_confirm.html"
    success_url = reverse_lazy("login")

    def get_form_kwargs(self) -> dict[str, object]:
        return {**super().get_form_kwargs(), "request": self.request}

    def form_valid(self, form: ResetPasswordForm) -> HttpResponse:  # type: ignore[override]
        form.save()
        del self.request.session[INTERNAL_RESET_SESSION_TOKEN]
        messages.success(self.request, _("Your password is changed. Sign in with it."))
        return HttpResponseRedirect(str(self.success_url))

    def form_invalid(self, form: ResetPasswordForm) -> HttpResponse:  # type: ignore[override]
        return self.render_to_response(self.get_context_data(form=form), status=400)
