"""The product's settings with a channel layer that loses messages on purpose, and a way to see what hangs."""

import faulthandler
import signal

from project.settings import *  # noqa: F403

CHANNEL_LAYERS = {
    "default": CHANNEL_LAYERS["default"] | {"BACKEND": "tests.chaos.lossy.LossyChannelLayer"}  # noqa: F405
}
faulthandler.register(signal.SIGUSR1)  # each thread's stack goes to the log
