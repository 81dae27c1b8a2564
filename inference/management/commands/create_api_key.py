"""manage.py create_api_key: a key for a program."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from inference.auth import create_key


class Command(BaseCommand):
    help = "Create an API key and print it. It is stored nowhere else, so keep it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", required=True, help="what the key is for")
        parser.add_argument("--user", help="the name of the user it belongs to")

    def handle(self, *args: Any, name: str, user: str | None, **options: Any) -> None:
        try:
            owner = User.objects.get_by_natural_key(user) if user else None
        except User.DoesNotExist:
            raise CommandError(f"there is no user '{user}'") from None
        if not name.strip():
            raise CommandError("the name is empty")
        self.stdout.write(create_key(name.strip()[:100], owner))
