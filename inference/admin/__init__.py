"""The rows, for operators. What the recorder writes is shown and never edited."""

from . import chats, generations, keys, operators, parks, people

__all__ = ["chats", "generations", "keys", "operators", "parks", "people"]
