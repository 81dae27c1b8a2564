"""manage.py create_api_key: a key for a program."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from inference.auth import create_key
from inference.messages import HIGHEST, LOWEST, PRIORITIES


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

    def handle(
        self, *args: Any, name: str, user: str | None, max_priority: int | None, **options: Any
    ) -> None:
        call_command("migrate", verbosity=0)  # a key can be made before the first start, which may need it
        try:
            owner = User.objects.get_by_natural_key(user) if user else None
        except User.DoesNotExist:
            raise CommandError(f"there is no user '{user}'") from None
        if not name.strip():
            raise CommandError("the name is empty")
        self.stdout.write(create_key(name.strip()[:100], owner, max_priority=max_priority))
