"""What a person reads of how an answer ended, and what there is to do. Buttons are called as they are on the
page: Edit, Regenerate, Continue."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from inference.models import Generation

from . import conversation

# By a part of a failure's error, as a worker says it: what is told of it, and what to do where that is
# neither to continue nor to regenerate.
_FAILURES = {
    conversation.CONTEXT_SIZE: (
        gettext_lazy("This chat is too long for the model."),
        gettext_lazy("Shorten your message with “Edit”, or start a new chat."),
    ),
    conversation.UNREACHABLE: (gettext_lazy("The model can't be reached."), ""),
    conversation.LOST: (gettext_lazy("This answer was lost when the server was restarted."), ""),
    "part of the answer was lost": (
        gettext_lazy("A part of this answer was lost."),
        gettext_lazy("“Regenerate” has it written anew."),
    ),
    "the KV cache": (gettext_lazy("There was no room for more of this answer."), ""),
    "ended its worker twice": (
        gettext_lazy("The model broke down at this answer twice, so it isn't tried again."),
        gettext_lazy("Change your message with “Edit”, or start a new chat."),
    ),
    "chat template": (
        gettext_lazy("This model can't read this chat."),
        gettext_lazy("Change your message with “Edit”, or the system prompt in “Settings”."),
    ),
}


def note(generation: Generation, *, by_operator: bool = False) -> str:
    """The line under the answer of a generation that is over; "" of a plain end, or where there is none.
    `by_operator`: it was an operator who has cancelled it."""
    if generation.state == Generation.State.FAILED:
        error = generation.error.rstrip(".") or _("something broke")
        return _failure(generation)[0] or _("No more of this answer: %(error)s.") % {"error": error}
    if Generation.State.CANCELLED in (generation.state, generation.finish_reason):
        return _("Stopped by an operator.") if by_operator else _("Stopped.")
    if generation.finish_reason == Generation.FinishReason.LENGTH:
        if conversation.is_at_limit(generation):
            n = generation.completion_tokens or 0
            return ngettext(
                "Cut off at the limit of %(n)s token.", "Cut off at the limit of %(n)s tokens.", n
            ) % {"n": n}
        return _("The model's context is full.")
    return ""


def advice(generation: Generation, *, has_text: bool, by_operator: bool = False) -> str:
    """What to do about such an end, while the answer is the last of its chat; "" of one that was wished for.
    `has_text`: something was written, which could go on."""
    again = _("“Continue” goes on from here.") if has_text else _("“Regenerate” tries again.")
    match look(generation):
        case "failed":
            return _failure(generation)[1] or again
        case "stopped" if by_operator:
            return again
        case "cut" if conversation.is_at_limit(generation):
            return again
        case "cut":
            return _("Start a new chat to go on.")
    return ""


def _failure(generation: Generation) -> tuple[str, str]:
    """What is told of a failure that is known, and what to do in place of the usual; "" for nothing."""
    for part, (known, instead) in _FAILURES.items():
        if part in generation.error:
            return str(known), str(instead)
    return "", ""


def look(generation: Generation) -> str:
    """waiting, while it is on its way; finished, stopped, cut or failed."""
    if generation.state == Generation.State.FAILED:
        return "failed"
    if Generation.State.CANCELLED in (generation.state, generation.finish_reason):
        return "stopped"
    if generation.finish_reason == Generation.FinishReason.LENGTH:
        return "cut"
    return "finished" if generation.is_over else "waiting"
