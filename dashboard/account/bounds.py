"""How often, and how many."""

from __future__ import annotations

import logging

from django.http import HttpRequest

from inference import address
from inference.broker import throttle
from inference.broker.connect import AWAY

logger = logging.getLogger(__name__)

HOUR = 3600  # seconds
SIGN_UPS = 20  # attempts of one address, in the usual window
RESETS = 10  # of one address, in the usual window
MAILS = 3  # to one address of mail, in an hour
KEYS = 20  # that are not revoked, of one person
KEYS_MADE = 30  # by one person, in an hour
EXPORTS = 10  # of one person, in an hour


def wait(what: str, who: str, most: int, window: int = throttle.WINDOW_S) -> int:
    """Count one more; the seconds to wait before the next, or 0. While Redis is away nothing is counted."""
    try:
        return throttle.once_more(what, who, most, window)
    except AWAY as error:
        logger.warning("Not counted: %s: %s", what, error)
        return 0


def wait_at(what: str, request: HttpRequest, most: int) -> int:
    """The same of the address that a request comes from."""
    return wait(what, address.of_request(request), most)
