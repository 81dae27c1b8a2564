"""Who may ask at all, before any consumer or view: checks of the request's Host and Origin headers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from inference.origins import is_ours
from inference.wire.errors import RequestError
from inference.wire.openai import error_body

Application = Callable[..., Awaitable[Any]]
WRONG_HOST = RequestError(400, "", "This server has no such name: ALLOWED_HOSTS can give it one.")


class AllowedHosts:
    """On a loopback address nobody asks for another name, but a site whose name is made to mean this machine.

    Elsewhere the API may be reached by any name, and is opened by a key; for pages Django asks itself.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        if not settings.BERTH.is_loopback or all(map(_is_allowed, _values(scope, b"host"))):
            return await self._application(scope, receive, send)
        if scope["type"] == "websocket":
            return await WebsocketDenier()(scope, receive, send)
        body = json.dumps(error_body(WRONG_HOST)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": WRONG_HOST.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return None


class SameOrigin:
    """A WebSocket carries cookies, and no browser asks for leave: its page must be one of ours."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
        if len(origins) == 1 and len(hosts) == 1 and _is_allowed(hosts[0]) and is_ours(origins[0], hosts[0]):
            return await self._application(scope, receive, send)
        return await WebsocketDenier()(scope, receive, send)


def _values(scope: dict[str, Any], header: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == header]


def _is_allowed(host: str) -> bool:
    """As `HttpRequest.get_host` decides."""
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)
