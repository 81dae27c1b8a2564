from typing import Any

from inference.options import Options
from inference.serve import web
from inference.serve.command import OwnCommand


class Command(OwnCommand):
    """Start one web process: the pages, the API and the recorder. It needs Redis and the database."""

    def run(self, options: Options, **_: Any) -> int:
        return web.run(options)
