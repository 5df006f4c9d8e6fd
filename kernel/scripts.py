"""Lua scripts by name: one file in `lua/`, one atomic step.

All keys of one call share a hash tag, so that a Redis Cluster runs it on one node; time is the server's plus the
clock's offset, given in ms. Whatever goes wrong with Redis leaves here as BrokerUnavailable, and within a bounded time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from importlib.resources import files
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from redis.asyncio import Redis
from redis.exceptions import MaxConnectionsError, RedisClusterException, RedisError, ResponseError

from kernel.errors import BrokerUnavailable

CALL_TIMEOUT_S = 3.0
"""No call takes longer, however often the client is set to try again."""

FAULTS = (RedisError, RedisClusterException, OSError)
"""What a Redis client raises when it cannot be reached, answers late (TimeoutError is an OSError) or refuses."""

PAUSE_S = 0.5
"""After a call without answer nobody asks again for so long: what runs beside Redis is not slowed by its time-outs."""

ALLOW_WHEN_FULL = "#!lua flags=allow-oom\n"

_away_until: WeakKeyDictionary[Redis, float] = WeakKeyDictionary()

T = TypeVar("T")


def read_script(name: str) -> str:
    """The text of `lua/<name>.lua`."""
    return (files("kernel") / "lua" / f"{name}.lua").read_text(encoding="utf-8")


async def ask(redis: Redis, what: str, call: Callable[[], Awaitable[T]]) -> T:
    """The result of `call` on this client. Raises BrokerUnavailable, at once when Redis did not answer a moment ago."""
    if monotonic() < _away_until.get(redis, 0.0):
        raise BrokerUnavailable(f"Redis did not do {what}: it did not answer a moment ago")
    try:
        async with asyncio.timeout(CALL_TIMEOUT_S):
            return await call()
    except FAULTS as error:
        if not isinstance(error, ResponseError | MaxConnectionsError):  # Redis answered, or was not even asked
            _away_until[redis] = monotonic() + PAUSE_S
        raise BrokerUnavailable(f"Redis did not do {what}: {error or type(error).__name__}") from error


class Script:
    """One Lua file, sent by its hash and loaded again where the server does not know it (any more).

    `when_full`: it may also write to a server that is at its `maxmemory`; needs Redis 7 or Valkey.
    """

    def __init__(self, redis: Redis, name: str, *, when_full: bool = False) -> None:
        self._redis, self._name = redis, name
        self._run = redis.register_script(ALLOW_WHEN_FULL * when_full + read_script(name))

    async def __call__(self, keys: Sequence[str], *args: str | bytes | int | float) -> Any:
        """The script's result, as redis-py decodes it: bytes, int, None, lists. Raises BrokerUnavailable."""
        return await ask(self._redis, self._name, lambda: self._run(keys, args))
