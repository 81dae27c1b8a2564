"""manage.py create_api_key: a key for a program."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from inference.messages import HIGHEST, LOWEST, PRIORITIES
from inference.models import ApiKey

MOST = 100_000


def priority(said: str) -> int:
    """The number of a priority given on the command line."""
    if said in PRIORITIES:
        return PRIORITIES[said]
    try:
        found = int(said)
    except ValueError:
        found = LOWEST + 1
    if not HIGHEST <= found <= LOWEST:
        raise ArgumentTypeError(f"'{said}' is not high, normal, low or an integer from {HIGHEST} to {LOWEST}")
    return found


def at_least_one(said: str) -> int:
    try:
        found = int(said)
    except ValueError:
        found = 0
    if not 1 <= found <= MOST:
        raise ArgumentTypeError(f"'{said}' is not a whole number from 1 to {MOST}")
    return found


class Command(BaseCommand):
    help = "Create an API key and print it. It is stored nowhere else, so keep it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", required=True, help="what the key is for")
        parser.add_argument("--user", help="the name of the user it belongs to")
        parser.add_argument(
            "--max-priority",
            type=priority,
            metavar="PRIORITY",
            help="the highest that its requests may ask for: high, normal, low, or an integer of which the "
            "lower goes first (default: its user's; normal without a user)",
        )

        parser.add_argument(
            "--expires-in",
            type=at_least_one,
            metavar="DAYS",
            help="until when it can be used (default: for ever)",
        )
        parser.add_argument(
            "--max-concurrent",
            type=at_least_one,
            metavar="N",
            help="how many generations it may have at once (default: what serve's --max-per-key says)",
        )
        parser.add_argument(
            "--max-output",
            type=at_least_one,
            metavar="N",
            help="tokens of an answer, at most (default: what serve's --max-output says)",
        )

    def handle(self, *args: Any, name: str, user: str | None, expires_in: int | None, **options: Any) -> None:
        call_command("migrate", verbosity=0)  # a key can be made before the first start, which may need it
        try:
            owner = User.objects.get_by_natural_key(user) if user else None
        except User.DoesNotExist:
            raise CommandError(f"there is no user '{user}'") from None
        if not name.strip():
            raise CommandError("the name is empty")
        bounds = {field: options[field] for field in ("max_priority", "max_concurrent", "max_output")}
        expires_at = timezone.now() + timedelta(days=expires_in) if expires_in else None
        _row, key = ApiKey.objects.create_key(name.strip()[:100], owner, expires_at=expires_at, **bounds)
        self.stdout.write(key)
