"""How often something may be tried: counted in Redis, so that all web processes count together.

Nothing depends on it: without Redis everything is let in, and what is throttled must be costly to guess anyway.
"""

from contextlib import suppress
from hashlib import sha256

from redis.asyncio import Redis

from kernel.errors import BrokerUnavailable
from kernel.scripts import ask


class Throttle:
    """At most `tries` of one name in `seconds`, which begin with the first."""

    def __init__(self, redis: Redis, prefix: str, what: str, *, tries: int, seconds: int) -> None:
        self._redis = redis
        self._prefix = f"{prefix}:{what}"
        self._tries = tries
        self._seconds = seconds

    async def enter(self, name: str) -> int:
        """Count a try; 0 where it may be made, else the seconds until the next one may."""
        try:
            count, left_ms = await ask(self._redis, "throttle", lambda: self._count(self._key(name)))
        except BrokerUnavailable:
            return 0
        return 0 if count <= self._tries else max(1, -(-left_ms // 1000))

    async def forget(self, name: str) -> None:
        """Begin anew: the last try was a good one."""
        with suppress(BrokerUnavailable):
            await ask(self._redis, "throttle", lambda: self._redis.delete(self._key(name)))

    async def _count(self, key: str) -> tuple[int, int]:
        async with self._redis.pipeline(transaction=True) as together:
            together.set(key, 0, nx=True, ex=self._seconds)  # so that no count is ever without its end
            together.incr(key)
            together.pttl(key)
            _, count, left_ms = await together.execute()
        return count, left_ms

    def _key(self, name: str) -> str:
        return f"{{{self._prefix}:{sha256(name.encode()).hexdigest()[:32]}}}"
