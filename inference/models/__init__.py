"""What is kept: chats and their messages, generations and their parks, and API keys.

Only web processes read and write these. A generation's row follows its events by way of the recorder,
so it can lag a moment behind the stream; the live state is in `broker.occupancy`.
"""

from .chats import TITLE_LENGTH, Chat, Message, Share
from .generations import Generation, Preemption
from .keys import ApiKey, ApiKeyQuerySet
from .limits import UserLimits
from .operators import OperatorAction

__all__ = (
    "TITLE_LENGTH",
    "ApiKey",
    "ApiKeyQuerySet",
    "Chat",
    "Generation",
    "Message",
    "OperatorAction",
    "Preemption",
    "Share",
    "UserLimits",
)
