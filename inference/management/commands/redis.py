import os
from typing import Any

from inference.options import Options
from inference.serve import checks, embedded_redis
from inference.serve.command import OwnCommand


class Command(OwnCommand):
    """Start the embedded Redis of this data directory in the foreground."""

    def run(self, options: Options, **_: Any) -> int:
        lock = checks.lock(options.data_dir)
        command, socket = embedded_redis.prepare(options.data_dir)
        print(f"Redis listens on {socket}", flush=True)
        os.set_inheritable(lock, True)  # the server holds the data directory as long as it lives
        os.execv(command[0], command)
