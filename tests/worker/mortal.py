"""`manage.py worker`, which one token kills: run with `python -m tests.worker.mortal`."""

from __future__ import annotations

import os
import signal
import sys

from inference.engine.engine import Engine, Work
from manage import main

POISON = 4242  # a token that no prompt of a test has by chance

_decode = Engine._decode


def deadly(engine: Engine, work: list[Work]) -> None:
    if any(POISON in seq.tokens for seq, _ in work):
        os.kill(os.getpid(), signal.SIGKILL)
    _decode(engine, work)


if __name__ == "__main__":
    Engine._decode = deadly  # type: ignore[method-assign,assignment]
    main(["manage.py", "worker", *sys.argv[1:]])
