"""The web process's application: the API and the long-lived streams, then Django for the rest."""

from __future__ import annotations

import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django_application = get_asgi_application()  # before anything that imports models

from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import WebsocketDenier  # noqa: E402
from django.core.signals import request_finished  # noqa: E402
from django.db import connections  # noqa: E402
from django.urls import re_path  # noqa: E402

from dashboard import routing as dashboard  # noqa: E402
from inference import routing as inference  # noqa: E402
from project.hosts import AllowedHosts, SameOrigin  # noqa: E402

routes = ProtocolTypeRouter(
    {
        "http": URLRouter(
            [
                *inference.http_urlpatterns,
                *dashboard.http_urlpatterns,
                re_path(r"", django_application),  # type: ignore[arg-type]
            ]
        ),
        "websocket": SameOrigin(
            URLRouter([*dashboard.websocket_urlpatterns, re_path(r"", WebsocketDenier.as_asgi())])
        ),
    }
)
application = AllowedHosts(routes)


def _close_connections(**_: Any) -> None:
    """Under ASGI each of Django's requests has a thread of its own, so that no other uses its connections to
    the database again; they would stay open until Python happened to search for garbage."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


request_finished.connect(_close_connections)
