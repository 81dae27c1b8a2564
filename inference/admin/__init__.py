"""The rows, for operators. What the recorder writes is shown and never edited."""

from django.contrib import admin

from . import chats, generations, keys, operators, parks, people

__all__ = ["chats", "generations", "keys", "operators", "parks", "people"]

admin.site.empty_value_display = "–"
