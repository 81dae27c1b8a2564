"""What people fill in."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from . import bounds, look_alikes
from .passwords import Bounded, Confirmed, NewPassword

NAME_LENGTH = 30  # characters
NAME = re.compile(r"[^\W_][\w.-]{1,29}")
RESERVED = {"admin", "administrator", "berth", "moderator", "operator", "root", "staff", "support", "system"}
NAME_RULE = _("2 to 30 letters, digits, and . _ - within. Others may see it.")
LIFETIMES = {"30": _("30 days"), "90": _("90 days"), "365": _("a year"), "": _("until I revoke it")}


class SignUpForm(NewPassword):
    field_order = ("name", "new_password", "again", "email")

    name = forms.CharField(
        label=_("Name"),
        help_text=NAME_RULE,
        widget=forms.TextInput(
            attrs={
                "autocomplete": "username",
                "autocapitalize": "none",
                "spellcheck": "false",
                "maxlength": NAME_LENGTH,
            }
        ),
        error_messages={"required": _("Choose a name.")},
    )
    email = forms.EmailField(
        label=_("E-mail address (if you like)"),
        help_text=_("Only for a link when you have forgotten your password."),
        required=False,
        max_length=254,
        error_messages={"invalid": _("This is no e-mail address. Correct it, or leave it away.")},
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["new_password"].label = _("Password")

    def user(self) -> User:
        return User(username=self.cleaned_data.get("name", ""), email=self.cleaned_data.get("email", ""))

    def clean_name(self) -> str:
        name = unicodedata.normalize("NFKC", self.cleaned_data["name"])
        # Before it is known whether somebody has the name, so that nobody tries them all.
        self.hold_back(bounds.wait_at("sign-up", self.request, bounds.SIGN_UPS))
        if not NAME.fullmatch(name):
            raise ValidationError(
                _("A name has 2 to 30 letters and digits, and may have . _ - within. Choose one like that.")
            )
        if look_alikes.mixes_alphabets(name):
            raise ValidationError(_("Write the name in letters of one alphabet."))
        if name.casefold() in RESERVED or look_alikes.is_taken(name):
            raise ValidationError(self.taken)
        return name

    taken = _("This name is taken. Choose another.")


class ChangePasswordForm(Confirmed, NewPassword):
    field_order = ("password", "new_password", "again")


class ResetForm(Bounded):
    email = forms.EmailField(
        label=_("E-mail address of your account"),
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
        error_messages={
            "required": _("Type the e-mail address of your account."),
            "invalid": _("This is no e-mail address. Correct it."),
        },
    )

    def clean_email(self) -> str:
        self.hold_back(bounds.wait_at("reset", self.request, bounds.RESETS))
        return str(self.cleaned_data["email"])


class EmailForm(Confirmed):
    field_order = ("email", "password")

    email = forms.EmailField(
        label=_("E-mail address"),
        help_text=_("Links to reset your password go there. Leave it empty for none."),
        required=False,
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
        error_messages={"invalid": _("This is no e-mail address. Correct it, or leave it empty.")},
    )


class KeyForm(Bounded):
    name = forms.CharField(
        label=_("What it is for"),
        max_length=100,
        widget=forms.TextInput(attrs={"autocomplete": "off", "placeholder": _("laptop")}),
        error_messages={
            "required": _("Say what the key is for."),
            "max_length": _("That is too long: 100 characters at most."),
        },
    )
    lifetime = forms.ChoiceField(
        label=_("It can be used for"),
        choices=LIFETIMES,
        initial="90",
        required=False,
        error_messages={"invalid_choice": _("Choose one of these.")},
    )

    def clean_lifetime(self) -> datetime | None:
        days = self.cleaned_data["lifetime"]
        return timezone.now() + timedelta(days=int(days)) if days else None
