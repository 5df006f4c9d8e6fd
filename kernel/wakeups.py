"""Wake-ups: a word to every sleeping worker that there may be something to do.

A lost one costs time, never work: whoever waits does so with a time-out. A subscription outlives any outage of Redis,
and what may have been said meanwhile counts as a wake-up when the line is back.
"""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

from redis.asyncio import Redis

from kernel.scripts import CALL_TIMEOUT_S, FAULTS, ask
from kernel.tasks import end

SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0
"""Between two attempts to subscribe: doubled from the first to the second, with jitter."""

_log = logging.getLogger(__name__)


class Wakeups:
    """One channel under a key prefix."""

    def __init__(self, redis: Redis, prefix: str) -> None:
        self._redis: Any = redis  # redis-py leaves pub/sub untyped
        self.channel = f"{prefix}:wake"

    async def wake(self) -> None:
        """Wake every worker that waits. Raises BrokerUnavailable."""
        await ask(self._redis, "publish", lambda: self._redis.publish(self.channel, b""))

    @asynccontextmanager
    async def subscribe(self) -> AsyncGenerator["Subscription"]:
        """A subscription for the time of the block; from its first line on, no wake-up passes it by.

        Redis may be away: that raises nothing, and holds the block up for 3 seconds at most.
        """
        subscription = Subscription(self._redis, self.channel)
        listening = asyncio.create_task(subscription.listen(), name=f"wake-ups of {self.channel}")
        try:
            await subscription.settled()
            yield subscription
        finally:
            await end(listening)


class Subscription:
    """One listener of the channel, for one waiting task."""

    def __init__(self, redis: Any, channel: str) -> None:
        self._redis, self._channel = redis, channel
        self._woken, self._settled = asyncio.Event(), asyncio.Event()
        self._pause_s = SHORTEST_PAUSE_S

    async def wait(self, timeout_s: float) -> bool:
        """True as soon as there is, or since the last call was, a wake-up; False after `timeout_s` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        woken = self._woken.is_set()
        self._woken.clear()
        return woken

    async def settled(self) -> None:
        """Return when the first attempt to subscribe has succeeded or failed, or takes too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CALL_TIMEOUT_S):
                await self._settled.wait()

    async def listen(self) -> None:
        """Subscribe and pass on what is heard, for ever."""
        while True:
            try:
                await self._hear()
            except FAULTS as error:
                _log.warning("Wake-ups are not heard for now: %s", error)
            self._settled.set()
            await asyncio.sleep(self._pause_s * random.uniform(0.8, 1.2))
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    async def _hear(self) -> None:
        async with self._redis.pubsub() as pubsub:
            await pubsub.subscribe(self._channel)
            async for message in pubsub.listen():
                self._pause_s = SHORTEST_PAUSE_S
                # A later "subscribe": the client has mended the line by itself and may have missed something meanwhile.
                first = not self._settled.is_set() and message["type"] == "subscribe"
                self._settled.set()
                if not first:
                    self._woken.set()
