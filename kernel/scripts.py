"""Lua scripts by name: one file in `lua/`, one atomic step.

All keys of one call share a hash tag, so that a Redis Cluster runs it on one node; time is the server's plus the
clock's offset, given in ms. Whatever goes wrong with Redis leaves here as BrokerUnavailable, and within a bounded time.
"""

import asyncio
from collections.abc import Sequence
from importlib.resources import files
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from redis.asyncio import Redis
from redis.exceptions import RedisClusterException, RedisError, ResponseError

from kernel.errors import BrokerUnavailable

CALL_TIMEOUT_S = 3.0
"""No call takes longer, however often the client is set to try again."""

FAULTS = (RedisError, RedisClusterException, OSError)
"""What a Redis client raises when it cannot be reached, answers late (TimeoutError is an OSError) or refuses."""

PAUSE_S = 0.5
"""After a call without answer nobody asks again for so long: what runs beside Redis is not slowed by its time-outs."""

_away_until: WeakKeyDictionary[Redis, float] = WeakKeyDictionary()


def read_script(name: str) -> str:
    """The text of `lua/<name>.lua`."""
    return (files("kernel") / "lua" / f"{name}.lua").read_text(encoding="utf-8")


class Script:
    """One Lua file, sent by its hash and loaded again where the server does not know it (any more)."""

    def __init__(self, redis: Redis, name: str) -> None:
        self.name = name
        self._redis = redis
        self._run = redis.register_script(read_script(name))

    async def __call__(self, keys: Sequence[str], *args: str | bytes | int | float) -> Any:
        """The script's result, as redis-py decodes it: bytes, int, None, lists. Raises BrokerUnavailable."""
        if monotonic() < _away_until.get(self._redis, 0.0):
            raise BrokerUnavailable(f"Redis did not do {self.name}: it did not answer a moment ago")
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                return await self._run(keys, args)
        except FAULTS as error:
            if not isinstance(error, ResponseError):  # that one is an answer
                _away_until[self._redis] = monotonic() + PAUSE_S
            raise BrokerUnavailable(f"Redis did not do {self.name}: {error or type(error).__name__}") from error
