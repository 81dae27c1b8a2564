"""Where a request comes from, as far as it can be believed."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest

UNKNOWN = "unknown"


def of_scope(scope: Mapping[str, Any]) -> str:
    """The address behind an ASGI scope; `UNKNOWN` when there is none."""
    forwarded = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return client_address((scope.get("client") or ("",))[0], ",".join(forwarded))


def of_request(request: HttpRequest) -> str:
    """The address behind a request to Django."""
    return client_address(request.META.get("REMOTE_ADDR") or "", request.META.get("HTTP_X_FORWARDED_FOR", ""))


def client_address(peer: str, forwarded: str) -> str:
    """`peer`, or, where that is one of TRUSTED_PROXIES, the address that it says it has forwarded.

    What a client writes into X-Forwarded-For itself stands left of what the proxies add. An IPv6 address is
    cut to its network of /64, which belongs to one customer.
    """
    hops = [hop.strip() for hop in forwarded.split(",") if hop.strip()]
    while hops and _is_trusted(peer):
        peer = hops.pop()
    try:
        found = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return UNKNOWN
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            return str(ipaddress.ip_network((found, 64), strict=False).network_address)
        found = found.ipv4_mapped
    return str(found)


def _is_trusted(peer: str) -> bool:
    try:
        address = ipaddress.ip_address(peer)
        return any(address in ipaddress.ip_network(proxy) for proxy in settings.TRUSTED_PROXIES)
    except ValueError:
        return False
