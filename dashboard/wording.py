"""What a person reads of how an answer ended."""

from __future__ import annotations

from django.utils.translation import gettext as _

from inference.models import Generation

from . import conversation


def failure(error: str) -> str:
    """What a person reads of an error, and what to do."""
    if conversation.CONTEXT_SIZE in error:
        return _("This chat is too long for the model. Shorten the message, or start a new chat.")
    error = error.rstrip(".") or _("something broke")
    said = _("No more of this answer: %(error)s.") % {"error": error}
    return said if "again" in error else said + " " + _("Send your message again.")


def note(generation: Generation) -> str:
    """The line under the answer of a generation that is over; "" of a plain end, or where there is none."""
    if generation.state == Generation.State.FAILED:
        return failure(generation.error)
    if Generation.State.CANCELLED in (generation.state, generation.finish_reason):
        return _("Stopped.")
    if generation.finish_reason == Generation.FinishReason.LENGTH:
        if conversation.is_at_limit(generation):
            return _("Cut off at the length limit.")
        return _("The model's context is full. Start a new chat to go on.")
    return ""


def look(generation: Generation) -> str:
    """waiting, while it is on its way; finished, stopped, cut or failed."""
    if generation.state == Generation.State.FAILED:
        return "failed"
    if Generation.State.CANCELLED in (generation.state, generation.finish_reason):
        return "stopped"
    if generation.finish_reason == Generation.FinishReason.LENGTH:
        return "cut"
    return "finished" if generation.is_over else "waiting"
