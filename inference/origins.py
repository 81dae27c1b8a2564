"""Pages of other sites: which of them a browser may let in, by the request's own Origin and Host headers."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from django.conf import settings


def is_ours(origin: str, host: str) -> bool:
    """Whether a page of this origin is one of ours: of the host that was asked, or one that is trusted.

    The schemes may differ, since a proxy may speak TLS for us.
    """
    return origin in settings.CSRF_TRUSTED_ORIGINS or (bool(host) and _netloc(origin) == host.lower())


def may_go_without_key(headers: Mapping[bytes, bytes]) -> bool:
    """Whether the sender is no browser, or a page of ours or of this machine: while the API is open, any site
    that is looked at here could use it otherwise."""
    origin = headers.get(b"origin")
    if origin is None:
        return True
    text = origin.decode("latin-1")
    return is_ours(text, headers.get(b"host", b"").decode("latin-1")) or _is_local(text)


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _is_local(origin: str) -> bool:
    try:
        name = urlsplit(origin).hostname or ""
        return name == "localhost" or name.endswith(".localhost") or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
