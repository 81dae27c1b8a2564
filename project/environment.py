"""What an operator gives in environment variables, checked before anything starts.

All raise ImproperlyConfigured, whose message is a line for who has set the variable.
"""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import dj_database_url
from django.core.exceptions import ImproperlyConfigured


def database(data_dir: Path) -> Any:
    """`DATABASE_URL` as Django's settings of a database; without it SQLite in the data directory."""
    usual = f"sqlite:///{data_dir / 'db.sqlite3'}"
    try:
        return dj_database_url.config(default=usual, conn_max_age=60, conn_health_checks=True)
    except ValueError:  # its message would show the password
        raise ImproperlyConfigured(
            "DATABASE_URL cannot be used: it is postgres://USER:PASSWORD@HOST:PORT/NAME, or sqlite:////PATH"
        ) from None


def origins(name: str) -> list[str]:
    """Such as https://chat.example.org, separated by commas."""
    found = _listed(name, "")
    for origin in found:
        parts = _split(name, origin)
        if parts.path or parts.query:
            raise ImproperlyConfigured(f"{name}: {origin} is more than scheme and host")
    return found


def url(name: str) -> str:
    """Of a site, without a slash at its end; "" when there is none."""
    found = os.environ.get(name, "").rstrip("/")
    if found:
        _split(name, found)
    return found


def names(name: str) -> list[str]:
    """Host names, separated by commas."""
    return _listed(name, "")


def networks(name: str, usual: str) -> list[str]:
    """Addresses and networks, separated by commas."""
    found = _listed(name, usual)
    for network in found:
        try:
            ipaddress.ip_network(network)
        except ValueError as error:
            raise ImproperlyConfigured(f"{name}: {error}; it is such as 127.0.0.1,10.0.0.0/8") from None
    return found


def _listed(name: str, usual: str) -> list[str]:
    return [word for part in os.environ.get(name, usual).split(",") if (word := part.strip())]


def _split(name: str, address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_good = False
    if not is_good:
        raise ImproperlyConfigured(f"{name}: {address} is no address such as https://chat.example.org")
    return parts
