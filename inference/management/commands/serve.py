from typing import Any

from inference.options import Options
from inference.serve import supervisor
from inference.serve.command import OwnCommand


class Command(OwnCommand):
    """Start everything on this machine: Redis if none is given, one worker and the web server."""

    def run(self, options: Options, **_: Any) -> int:
        return supervisor.run(options)
