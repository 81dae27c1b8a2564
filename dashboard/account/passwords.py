"""Passwords: what a good one is, said so that a person knows what to do; and asking for it once more."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from django import forms
from django.contrib.auth import password_validation
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from inference import address
from inference.broker import throttle
from inference.broker.connect import AWAY

logger = logging.getLogger(__name__)

HINT = _("At least 8 characters. Several words, or one that your browser makes, are hard to guess.")
TOO_OFTEN = _("Too many attempts for now. Nothing was changed; try again in %(wait)d seconds.")
WHAT_TO_DO = {
    "password_too_short": _("It is too short. Use at least 8 characters."),
    "password_too_common": _(
        "It is one of those that are tried first. Use several words, or let your browser make one."
    ),
    "password_entirely_numeric": _("It is made of digits alone. Use letters too."),
    "password_too_similar": _("It is too much like your name or your e-mail address. Choose another."),
}


def check(password: str, user: User) -> None:
    """Raises ValidationError, which says what to do."""
    try:
        password_validation.validate_password(password, user)
    except ValidationError as refused:
        raise ValidationError(
            [ValidationError(WHAT_TO_DO[e.code]) if e.code in WHAT_TO_DO else e for e in refused.error_list]
        ) from None


class Bounded(forms.Form):
    """A form that may be sent so many times. `wait`: the seconds until it is read again; 0: it was read."""

    wait = 0

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        self.request = request
        super().__init__(*args, **kwargs)

    def hold_back(self, wait: int) -> None:
        """Raises ValidationError unless `wait` is 0."""
        self.wait = wait
        if wait:
            raise ValidationError(TOO_OFTEN, code="throttled", params={"wait": wait})


class NewPassword(Bounded):
    """A new one, twice. `user()` is whose."""

    new_password = forms.CharField(
        label=_("New password"),
        help_text=HINT,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        error_messages={"required": _("Choose a password.")},
    )
    again = forms.CharField(
        label=_("The same again"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        error_messages={"required": _("Type it a second time.")},
    )

    def user(self) -> User:
        """Whose it becomes, as far as the form knows: who is signed in, where nothing else is said."""
        assert isinstance(self.request.user, User)
        return self.request.user

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean() or self.cleaned_data
        new, again = cleaned.get("new_password"), cleaned.get("again")
        if new and again and new != again:
            self.add_error("again", ValidationError(_("The two are not the same. Type it again.")))
        elif new:
            try:
                check(new, self.user())
            except ValidationError as refused:
                self.add_error("new_password", refused)
        return cleaned


class Confirmed(Bounded):
    """What takes the password of who is signed in, whoever sits there. Guesses count as signing in."""

    password = forms.CharField(
        label=_("Your password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
        error_messages={"required": _("Type your password.")},
    )

    def clean_password(self) -> str:
        user, password = self.request.user, str(self.cleaned_data["password"])
        assert isinstance(user, User)
        name, source = user.get_username(), address.of_request(self.request)
        try:
            wait = throttle.count(name, source)
        except AWAY as error:
            logger.warning("Attempts are not counted: %s", error)
            wait = 0
        self.hold_back(wait)
        if not user.check_password(password):
            raise ValidationError(_("That is not your password. Nothing was changed."))
        with contextlib.suppress(*AWAY):
            throttle.forget(name, source)
        return password
