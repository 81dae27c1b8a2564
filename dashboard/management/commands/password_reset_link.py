"""manage.py password_reset_link: for a person who forgot a password, where no mail is sent."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dashboard.account.reset import link


class Command(BaseCommand):
    help = (
        "Print a link with which a person chooses another password. It works once, and for a day: give it to "
        "nobody else."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="the person's name")
        parser.add_argument(
            "--url",
            help="what the link begins with (default: PUBLIC_URL, or this machine's own address)",
        )

    def handle(self, *args: Any, name: str, url: str | None, **options: Any) -> None:
        try:
            user = User.objects.get_by_natural_key(name)
        except User.DoesNotExist:
            raise CommandError(f"there is no user '{name}'") from None
        if not user.is_active:
            raise CommandError(f"'{name}' is not active: nobody can sign in with this account")
        own = f"http://{settings.BERTH.host}:{settings.BERTH.port}"
        self.stdout.write(link(user, (url or settings.PUBLIC_URL or own).rstrip("/")))
