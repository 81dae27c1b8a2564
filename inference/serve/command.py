"""What Berth's own commands share: options that `manage.py` has parsed, one line when they cannot start."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from inference.options import Options

from . import CannotStart, checks
from .child import GIVES_UP


class OwnCommand(BaseCommand, ABC):
    """A command whose flags are llama-server's. `manage.py COMMAND --help` lists them."""

    requires_system_checks = ()

    def handle(self, **arguments: Any) -> None:
        options: Options = settings.BERTH
        try:
            checks.data_dir(options.data_dir)
            sys.exit(self.run(options, **arguments))
        except CannotStart as error:
            name = type(self).__module__.rpartition(".")[2]
            print(f"manage.py {name}: {error}", file=sys.stderr, flush=True)
            sys.exit(GIVES_UP)

    @abstractmethod
    def run(self, options: Options, **arguments: Any) -> int:
        """Do the work; the exit code. Raises CannotStart."""
