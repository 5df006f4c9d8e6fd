"""Business objects whose dispatch may be due, in Redis: popped is removed, and a lost pop only delays.

Holds identities only, never a round or a token; those are read from the object when it is handled.
"""

from datetime import datetime

from redis.asyncio import Redis

from kernel.clock import Clock
from kernel.scripts import Script, ask


class Candidates:
    """A ZSET of object ids scored by when to look at them, in ms. Every method raises BrokerUnavailable."""

    def __init__(self, redis: Redis, prefix: str, name: str, clock: Clock) -> None:
        self._redis = redis
        self._key = f"{{{prefix}:dispatch}}:{name}"
        self._clock = clock
        self._pop = Script(redis, "dispatch_pop")

    async def add(self, object_id: str, due: datetime) -> None:
        """Have the object looked at by `due`; an earlier time wins."""
        score = due.timestamp() * 1000
        await ask(self._redis, "dispatch_add", lambda: self._redis.zadd(self._key, {object_id: score}, lt=True))

    async def pop(self, limit: int) -> list[str]:
        """Take up to `limit` due ids."""
        found: list[bytes] = await self._pop([self._key], limit, self._clock.offset_ms)
        return [member.decode() for member in found]
