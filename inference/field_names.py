"""The names that Django makes of fields and models, in the language of whoever reads them.

Named in one place, so that the models need not name each field twice.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Field, Model
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _

NAMES = {
    name: gettext_lazy(name)
    for name in (
        _("accepted at"),
        _("by"),
        _("cause"),
        _("cells"),
        _("chat"),
        _("chats"),
        _("completion tokens"),
        _("content"),
        _("created at"),
        _("deleted at"),
        _("detail"),
        _("error"),
        _("expires at"),
        _("finish reason"),
        _("finished at"),
        _("generation"),
        _("generations"),
        _("goes on from"),
        _("hash"),
        _("id"),
        _("kind"),
        _("last used at"),
        _("leaf"),
        _("max tokens"),
        _("message"),
        _("messages"),
        _("model"),
        _("name"),
        _("notices"),
        _("operator action"),
        _("operator actions"),
        _("owner"),
        _("parent"),
        _("parked at"),
        _("parks"),
        _("prefix"),
        _("priority"),
        _("prompt tokens"),
        _("resumed at"),
        _("revoked at"),
        _("role"),
        _("seed"),
        _("share"),
        _("shares"),
        _("slot"),
        _("started at"),
        _("state"),
        _("stream"),
        _("system prompt"),
        _("temperature"),
        _("title"),
        _("titled by"),
        _("token"),
        _("top p"),
        _("updated at"),
        _("user"),
        _("worker"),
    )
}


def translate(models: Iterable[type[Model]]) -> None:
    """Have each field and model that bears a name of NAMES, made by Django, show it translated."""
    for model in models:
        meta = model._meta
        meta.verbose_name = NAMES.get(str(meta.verbose_name), meta.verbose_name)
        meta.verbose_name_plural = NAMES.get(str(meta.verbose_name_plural), meta.verbose_name_plural)
        for field in meta.get_fields():
            if isinstance(field, Field):
                field.verbose_name = NAMES.get(str(field.verbose_name), field.verbose_name)
