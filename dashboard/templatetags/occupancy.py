"""The live occupancy, as a page shows it before its script takes over."""

from __future__ import annotations

import logging
import time
from typing import Any

from django import template
from django.template import Context
from django.utils.translation import gettext_lazy as _

from inference.broker import connect, occupancy
from inference.models import Preemption

logger = logging.getLogger(__name__)
register = template.Library()

# As names.js has them.
STATES = {
    "idle": _("idle"),
    "prefill": _("reading"),
    "decode": _("writing"),
    "parking": _("parking"),
    "parked": _("parked"),
    "resuming": _("resuming"),
    "held": _("held"),
}


@register.filter
def state_word(state: str) -> str:
    """What is done in a slot, in a word."""
    return str(STATES.get(state, state))


@register.filter
def cause_word(cause: str) -> str:
    """Why a chat was parked, in a word."""
    return str(dict(Preemption.Cause.choices).get(cause, cause))


@register.inclusion_tag("admin/occupancy_panel.html", takes_context=True)
def occupancy_panel(context: Context) -> dict[str, Any]:
    """Each worker's slots, pool, parked chats and queue; an empty panel that says why while Redis is away."""
    now, may_view = time.time(), context["user"].has_perm("inference.view_generation")
    try:
        workers = occupancy.get_all_sync()
    except connect.AWAY as error:
        logger.warning("The occupancy cannot be read: %s", error)
        return {"workers": [], "reachable": False, "now": now, "may_view": may_view}
    shown = [{**worker, "parked": [_with_wait(chat, now) for chat in worker["parked"]]} for worker in workers]
    return {"workers": shown, "reachable": True, "now": now, "may_view": may_view}


def _with_wait(chat: dict[str, Any], now: float) -> dict[str, Any]:
    minutes, seconds = divmod(max(0, int(now - chat["since"])), 60)
    return {**chat, "waited": f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"}
