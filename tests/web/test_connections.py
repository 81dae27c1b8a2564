"""What a page leaves open in the web process."""

from __future__ import annotations

import gc
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from tests.web.conftest import WebServer

pytestmark = pytest.mark.django_db(transaction=True)


def open_to_the_database() -> int:
    """Descriptors of this process."""
    name, found = str(connection.settings_dict["NAME"]), 0
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{descriptor}") == os.path.realpath(name)
        except FileNotFoundError:  # that of the list itself
            continue
    return found


@contextmanager
def _nothing_is_collected() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def test_pages_leave_no_connections_to_the_database(server: WebServer) -> None:
    def ask() -> None:
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://127.0.0.1:{server.port}/s/none/", timeout=60)

    connection.ensure_connection()
    before = open_to_the_database()
    assert before
    with _nothing_is_collected():
        for _ in range(5):
            ask()
        assert open_to_the_database() <= before + 1  # the last one's end may be yet to come
