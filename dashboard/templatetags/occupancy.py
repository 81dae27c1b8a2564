"""The live occupancy, as a page shows it before its script takes over."""

from __future__ import annotations

import logging
import time
from typing import Any

from django import template

from inference.broker import connect, occupancy

logger = logging.getLogger(__name__)
register = template.Library()


@register.inclusion_tag("admin/occupancy_panel.html")
def occupancy_panel() -> dict[str, Any]:
    """Each worker's slots, pool, parked chats and queue; an empty panel that says why while Redis is away."""
    now = time.time()
    try:
        workers = occupancy.get_all_sync()
    except connect.AWAY as error:
        logger.warning("The occupancy cannot be read: %s", error)
        return {"workers": [], "reachable": False, "now": now}
    shown = [{**worker, "parked": [_with_wait(chat, now) for chat in worker["parked"]]} for worker in workers]
    return {"workers": shown, "reachable": True, "now": now}


def _with_wait(chat: dict[str, Any], now: float) -> dict[str, Any]:
    return {**chat, "waited": f"{max(0, int(now - chat['since']))} s"}
