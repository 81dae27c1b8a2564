"""`manage.py worker` with faults: run with `python -m tests.worker.mortal`.

A step in which a token POISON is computed kills it. With MORTAL_STOPS_WITH=n it computes nothing more once n
chats have three tokens each, so that a test can do what it wants to them: it is not waiting for the right
moment. Its other half, which talks to Redis, lives.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from inference.engine.runner import Runner
from inference.engine.sequence import Work
from manage import main

POISON = 4242  # a token that no prompt of a test has by chance

_run = Runner.run


def faulty(runner: Runner, work: list[Work]) -> bool:
    if any(POISON in seq.tokens for seq, _ in work):
        os.kill(os.getpid(), signal.SIGKILL)
    stops_with = int(os.environ.get("MORTAL_STOPS_WITH", 0))
    if stops_with and sum(seq.generated >= 3 for seq, _ in work) >= stops_with:
        time.sleep(3600)
    return _run(runner, work)


if __name__ == "__main__":
    Runner.run = faulty  # type: ignore[method-assign,assignment]
    main(["manage.py", "worker", *sys.argv[1:]])
