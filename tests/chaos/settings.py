"""The product's settings with a channel layer that loses messages on purpose."""

from project.settings import *  # noqa: F403

CHANNEL_LAYERS = {
    "default": CHANNEL_LAYERS["default"] | {"BACKEND": "tests.chaos.lossy.LossyChannelLayer"}  # noqa: F405
}
