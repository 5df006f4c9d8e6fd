"""The one place that opens Redis: every call is bounded, and repeated once at most, after a connection that had died.

Every script can stand a repetition: a permit is taken by its owner's token, a frame is stored once by its place.
"""

from typing import Any, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff


def open_redis(url: str, *, timeout_s: float = 2.0) -> Redis:
    """A client for `url`. It connects at first use."""
    opened: Any = Redis.from_url(  # pyright: ignore[reportUnknownMemberType]  (redis-py leaves its options untyped)
        url,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=Retry(NoBackoff(), 1),
        health_check_interval=15,
        max_connections=1000,
    )
    return cast(Redis, opened)
