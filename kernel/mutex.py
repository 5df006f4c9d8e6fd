"""A distributed mutex for low-frequency scans: only a saving, never needed for correctness."""

from contextlib import suppress

from redis.asyncio import Redis
from redis.exceptions import RedisError


class Mutex:
    """At most one process in `seconds` does a thing; without Redis everyone does it."""

    def __init__(self, redis: Redis, prefix: str) -> None:
        self._redis = redis
        self._prefix = prefix

    async def take(self, name: str, seconds: float) -> bool:
        """Whether this process should do it now. There is no release: the lease is the period."""
        try:
            taken = await self._redis.set(f"{{{self._prefix}:mutex}}:{name}", b"1", nx=True, px=round(seconds * 1000))
        except (RedisError, OSError):
            return True
        return bool(taken)

    async def forget(self, name: str) -> None:
        """Let the next process do it at once: an operator has asked, or a test."""
        with suppress(RedisError, OSError):
            await self._redis.delete(f"{{{self._prefix}:mutex}}:{name}")
