"""A distributed mutex for low-frequency scans: only a saving, never needed for correctness."""

from contextlib import suppress

from redis.asyncio import Redis

from kernel.errors import BrokerUnavailable
from kernel.scripts import ask


class Mutex:
    """At most one process in `seconds` does a thing; without Redis everyone does it."""

    def __init__(self, redis: Redis, prefix: str) -> None:
        self._redis = redis
        self._prefix = prefix

    async def take(self, name: str, seconds: float) -> bool:
        """Whether this process should do it now. There is no release: the lease is the period."""
        lease_ms = round(seconds * 1000)
        try:
            taken = await ask(
                self._redis, "mutex", lambda: self._redis.set(self._key(name), b"1", nx=True, px=lease_ms)
            )
        except BrokerUnavailable:
            return True
        return bool(taken)

    async def forget(self, name: str) -> None:
        """Let the next process do it at once: an operator has asked, or a test."""
        with suppress(BrokerUnavailable):
            await ask(self._redis, "mutex", lambda: self._redis.delete(self._key(name)))

    def _key(self, name: str) -> str:
        return f"{{{self._prefix}:mutex}}:{name}"
