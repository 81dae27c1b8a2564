"""What the threads beside the pages have in common."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DatabaseError, close_old_connections

from inference.broker.connect import AWAY


@contextmanager
def attempt(logger: logging.Logger, failing: str) -> Iterator[None]:
    """One round of a thread, which no error ends. `failing` is what is logged then. No connection to the
    database that has ended is used, nor is one kept for long."""
    close_old_connections()
    try:
        yield
    except (*AWAY, DatabaseError) as error:
        logger.warning("%s: %s", failing, error)
    except Exception:
        logger.exception(failing)
    finally:
        close_old_connections()
