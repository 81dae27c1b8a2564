"""Chats and their messages. A message's text is on its own page alone, never in a list."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from inference.models import Chat, Message

from . import search
from .base import LargeTable, ReadOnly, moment


@admin.register(Chat)
class ChatAdmin(ReadOnly, LargeTable):
    list_display = ("__str__", "user", "turns", "created", "updated", "deleted")
    list_select_related = ("user",)
    search_fields = ("title", "user__username")
    search_help_text = _("A title or a user's name")
    date_hierarchy = "updated_at"  # by which the list is ordered
    list_filter = (("deleted_at", admin.EmptyFieldListFilter),)
    fields: ClassVar[Any] = (
        "user",
        "title",
        "titled_by",
        "turns",
        "system_prompt",
        "temperature",
        "top_p",
        "max_tokens",
        "seed",
        "created_at",
        "updated_at",
        "deleted_at",
    )
    readonly_fields = ("titled_by", "turns", "created_at", "updated_at", "deleted_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Chat]:
        turns = Message.objects.filter(chat=OuterRef("pk")).order_by().values("chat").annotate(n=Count("pk"))
        chats: QuerySet[Chat] = super().get_queryset(request)
        return chats.annotate(n_turns=Coalesce(Subquery(turns.values("n")), 0))

    @admin.display(description=_("Messages"))
    def turns(self, chat: Any) -> SafeString:
        url = f"{reverse('admin:inference_message_changelist')}?chat__id__exact={chat.pk}"
        return format_html('<a href="{}">{}</a>', url, chat.n_turns)

    @admin.display(description=_("created at"))
    def created(self, chat: Chat) -> SafeString | str:
        return moment(chat.created_at)

    @admin.display(description=_("updated at"))
    def updated(self, chat: Chat) -> SafeString | str:
        return moment(chat.updated_at)

    @admin.display(description=_("deleted at"))
    def deleted(self, chat: Chat) -> SafeString | str:
        return moment(chat.deleted_at)


@admin.register(Message)
class MessageAdmin(ReadOnly, LargeTable):
    list_display = ("id", "chat", "user", "role", "created")
    list_select_related = ("chat__user",)
    ordering = ("-created_at", "-pk")
    search_fields = ("chat__title", "chat__user__username")
    search_help_text = _("A chat's title or a user's name")
    date_hierarchy = "created_at"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Message], search_term: str
    ) -> tuple[QuerySet[Message], bool]:
        term = search_term.strip()
        return (search.messages(queryset, term) if term else queryset), False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup == "chat__id__exact" or super().lookup_allowed(lookup, value, request)

    @admin.display(description=_("created at"))
    def created(self, message: Message) -> SafeString | str:
        return moment(message.created_at)

    @admin.display(description=_("user"))
    def user(self, message: Message) -> str:
        return message.chat.user.get_username()
