"""Django's settings. What an operator can choose comes from flags and environment variables."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import tempfile
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from inference.broker.connect import layer_host
from inference.options import Options
from project import email, environment

BASE_DIR = Path(__file__).resolve().parent.parent
BERTH = Options.from_env()
DATA_DIR = BERTH.data_dir
STATIC_ROOT = DATA_DIR / "static"


def _secret_key() -> str:
    """The key of this data directory, made at its first use and readable by its owner alone."""
    path = DATA_DIR / "secret_key"
    if not path.exists():
        with tempfile.NamedTemporaryFile("w", dir=DATA_DIR, prefix=".secret_key-") as file:
            file.write(secrets.token_urlsafe(50))
            file.flush()
            with contextlib.suppress(FileExistsError):  # another process was quicker
                os.link(file.name, path)  # whole or not at all
    return path.read_text()


try:
    STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # whitenoise warns of one that is not there
    SECRET_KEY = os.environ.get("SECRET_KEY") or _secret_key()
except OSError as error:
    raise ImproperlyConfigured(
        f"cannot use the data directory {DATA_DIR}: {error.strerror}; choose another with --data-dir"
    ) from None
DEBUG = os.environ.get("DEBUG", "") == "1"


def _own_names() -> list[str]:
    """The names and addresses under which this machine knows itself. Nothing is sent to find them."""
    names = {"localhost", "127.0.0.1", "[::1]", BERTH.host}
    if not BERTH.is_loopback:
        names.add(socket.gethostname().lower())
        for family, elsewhere in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
            with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((elsewhere, 9))
                address = probe.getsockname()[0]
                names.add(f"[{address}]" if ":" in address else address)
    return sorted(names)


ALLOWED_HOSTS = environment.names("ALLOWED_HOSTS") or _own_names()
CSRF_TRUSTED_ORIGINS = environment.origins("CSRF_TRUSTED_ORIGINS")
# What links in mails and those of `manage.py password_reset_link` begin with.
PUBLIC_URL = environment.url("PUBLIC_URL")
# Whose X-Forwarded-For tells who is behind them: addresses and networks.
TRUSTED_PROXIES = environment.networks("TRUSTED_PROXIES", "127.0.0.0/8,::1" if BERTH.tls_proxy else "")
# Cookies are per host, not per port: servers side by side on one host must not sign each other out.
SESSION_COOKIE_NAME = f"berth_session_{BERTH.port}"
CSRF_COOKIE_NAME = f"berth_csrf_{BERTH.port}"
CSRF_COOKIE_HTTPONLY = True  # our scripts read the token in the page

# Behind a proxy that ends TLS nothing works without it.
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BERTH.tls_proxy else None
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BERTH.tls_proxy
SECURE_HSTS_SECONDS = 365 * 86400 if BERTH.tls_proxy else 0
# What `check --deploy` need not say. HSTS speaks for our own host: its subdomains and the browsers' preload
# list are for the domain's owner to decide. On a loopback address no network is between browser and server.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
if BERTH.is_loopback:
    SILENCED_SYSTEM_CHECKS += ["security.W004", "security.W008", "security.W012", "security.W016"]

INSTALLED_APPS = [
    "dashboard",  # before the admin, whose index it extends
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "inference",
]
MIDDLEWARE = [
    "project.security.browser_policies",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "dashboard.errors.ErrorPages",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "dashboard.unavailable.DatabaseAway",
]
CSRF_FAILURE_VIEW = "dashboard.errors.without_token"
ROOT_URLCONF = "project.urls"
ASGI_APPLICATION = "project.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
            ]
        },
    }
]

DATABASES = {"default": environment.database(DATA_DIR)}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["OPTIONS"] = {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [layer_host()], "prefix": "berth:layer"},
    }
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
PASSWORD_RESET_TIMEOUT = 86_400  # seconds
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"

# Without EMAIL_URL there is no mail, and who forgot a password asks an administrator.
HAS_EMAIL = bool(os.environ.get("EMAIL_URL"))
EMAIL_TIMEOUT = 10  # seconds
DEFAULT_FROM_EMAIL = os.environ.get("EMAIL_FROM", "") or email.sender(PUBLIC_URL)
globals().update(email.settings(os.environ.get("EMAIL_URL", "")))

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LANGUAGE_COOKIE_NAME = f"berth_language_{BERTH.port}"
LANGUAGE_COOKIE_AGE = 365 * 86400
LANGUAGE_COOKIE_HTTPONLY, LANGUAGE_COOKIE_SECURE, LANGUAGE_COOKIE_SAMESITE = True, BERTH.tls_proxy, "Lax"
FORMAT_MODULE_PATH = "project.formats"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
WHITENOISE_USE_FINDERS = True  # no collectstatic step for the person who runs it
WHITENOISE_AUTOREFRESH = DEBUG

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "{levelname} {name}: {message}", "style": "{"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {
        "daphne": {"level": "WARNING"},
        # It shows a traceback each second while Redis is away, which others say in one line.
        "channels_redis": {"level": "CRITICAL"},
        # Anybody can send a wrong Host header; it is answered with 400, and is no error of ours.
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        # So can anybody send too much.
        "django.security.RequestDataTooBig": {"level": "CRITICAL"},
        "django.security.TooManyFieldsSent": {"level": "CRITICAL"},
        "django.security.TooManyFilesSent": {"level": "CRITICAL"},
    },
}
