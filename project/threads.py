"""What runs in a web process beside the application. Each ends with the process."""

from __future__ import annotations

from django.conf import settings

from dashboard import housekeeping, patrol, titles
from inference import recorder


def start_threads() -> None:
    """The recorder, what makes titles of the ends that it writes, what purges, what looks for the lost."""
    if settings.BERTH.chat_titles:
        recorder.start_thread(tell=titles.start_thread())
    else:
        recorder.start_thread()
    housekeeping.start_thread()
    patrol.start_thread()
