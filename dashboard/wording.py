"""What a person reads of how an answer ended."""

from __future__ import annotations

from django.utils.translation import gettext as _

from inference.models import Generation

from . import conversation


def failure(error: str) -> str:
    """What a person reads of an error, and what to do."""
    if "context size" in error:
        return _("This chat is too long for the model. Shorten the message, or start a new chat.")
    error = error.rstrip(".") or _("something broke")
    said = _("No more of this answer: %(error)s.") % {"error": error}
    return said if "again" in error else said + " " + _("Send your message again.")


def ending(finish_reason: str, completion_tokens: int | None) -> str:
    """What a person reads under an answer that ended well; "" for a plain end."""
    if finish_reason == Generation.FinishReason.CANCELLED:
        return _("Stopped.")
    if finish_reason == Generation.FinishReason.LENGTH:
        if completion_tokens == conversation.longest():
            return _("Cut off at the length limit.")
        return _("The model's context is full. Start a new chat to go on.")
    return ""


def note(generation: Generation) -> str:
    """The line under the answer of a generation that is over; "" of one that is on its way."""
    if generation.state == Generation.State.FAILED:
        return failure(generation.error)
    if generation.state == Generation.State.CANCELLED:
        return _("Stopped.")
    return ending(generation.finish_reason, generation.completion_tokens)
