"""EMAIL_URL -> Django's settings of how mail is sent."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

BACKENDS = "django.core.mail.backends"
HELP = "it is smtp://USER:PASSWORD@HOST:PORT (with STARTTLS), smtps://… (with TLS from the start) or file:///FOLDER"


def settings(url: str) -> dict[str, Any]:
    """The settings; {} for "". Raises ImproperlyConfigured, whose message does not show the password."""
    if not url:
        return {}
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ImproperlyConfigured(f"EMAIL_URL cannot be read: {HELP}") from None
    if parts.scheme == "file" and parts.path.strip("/"):
        return {"EMAIL_BACKEND": f"{BACKENDS}.filebased.EmailBackend", "EMAIL_FILE_PATH": unquote(parts.path)}
    if parts.scheme not in ("smtp", "smtps") or not parts.hostname:
        raise ImproperlyConfigured(f"EMAIL_URL cannot be used: {HELP}")
    is_tls = parts.scheme == "smtps"
    return {
        "EMAIL_BACKEND": f"{BACKENDS}.smtp.EmailBackend",
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": port or (465 if is_tls else 587),
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": is_tls,
        "EMAIL_USE_TLS": not is_tls and parse_qs(parts.query).get("starttls") != ["no"],
    }


def sender(public_url: str) -> str:
    """From whom mail is where nothing else is said."""
    return f"Berth <no-reply@{urlsplit(public_url).hostname or 'localhost'}>"
