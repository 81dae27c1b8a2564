"""A channel layer that throws away a share of the group messages, as a network or a full buffer would."""

from __future__ import annotations

import os
import random
from typing import Any

from channels_redis.pubsub import RedisPubSubChannelLayer

SHARE = "CHAOS_DROP"  # variable: the share that is thrown away, 0..1
SEED = "CHAOS_SEED"


class LossyChannelLayer(RedisPubSubChannelLayer):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._share = float(os.environ.get(SHARE, "0"))
        self._rng = random.Random(int(os.environ.get(SEED, "0")))

    async def receive(self, channel: str) -> Any:
        while True:
            message = await self._get_layer().receive(channel)
            if self._rng.random() >= self._share:
                return message
