"""Settings of a stack with a model whose steps are quick: each takes as long as one of a small real model's.

So its chats are neither too long nor over before a page has done something, and while it sleeps the browser
beside it has the processor.
"""

import sys
import time

from project.settings import *  # noqa: F403

STEP_S = 0.012

if "worker" in sys.argv:  # the others do without llama.cpp
    from inference.engine.runner import Runner
    from inference.engine.sequence import Work

    _run = Runner.run

    def run(runner: Runner, work: list[Work]) -> bool:
        time.sleep(STEP_S)
        return _run(runner, work)

    Runner.run = run  # type: ignore[method-assign,assignment]
