"""Wake-ups: heard at once, never needed, and heard again after an outage."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from kernel.errors import BrokerUnavailable
from kernel.wakeups import Wakeups
from tests.integration.line import Line, once_back

LONG_S = 20.0


@pytest.fixture
async def line(server_urls: tuple[str, str], redis: Redis) -> AsyncIterator[Line]:
    """A line to the Redis whose keys the `redis` fixture removes."""
    async with Line(server_urls[1]) as line:
        yield line


async def test_a_wake_up_ends_the_wait(redis: Redis, prefix: str) -> None:
    wakeups = Wakeups(redis, prefix)
    async with wakeups.subscribe() as bell:
        waiting = asyncio.create_task(bell.wait(LONG_S))
        await wakeups.wake()
        assert await waiting


async def test_every_subscription_hears_it(redis: Redis, prefix: str) -> None:
    wakeups = Wakeups(redis, prefix)
    async with wakeups.subscribe() as one, wakeups.subscribe() as other:
        await wakeups.wake()
        assert await asyncio.gather(one.wait(LONG_S), other.wait(LONG_S)) == [True, True]


async def test_a_wake_up_between_two_waits_is_not_lost_and_counts_once(redis: Redis, prefix: str) -> None:
    wakeups = Wakeups(redis, prefix)
    async with wakeups.subscribe() as bell:
        await wakeups.wake()
        assert await bell.wait(LONG_S)
        assert not await bell.wait(0.01)


async def test_without_a_wake_up_the_wait_ends_by_itself(redis: Redis, prefix: str) -> None:
    async with Wakeups(redis, prefix).subscribe() as bell:
        assert not await bell.wait(0.01)


async def test_another_prefix_is_not_heard(redis: Redis, prefix: str) -> None:
    async with Wakeups(redis, prefix).subscribe() as bell:
        await Wakeups(redis, f"{prefix}x").wake()
        assert not await bell.wait(0.05)


async def test_a_subscription_outlives_an_outage(line: Line, prefix: str) -> None:
    redis = line.client()
    wakeups = Wakeups(redis, prefix)
    async with wakeups.subscribe() as bell:
        await line.cut()
        assert not await bell.wait(0.05)
        with pytest.raises(BrokerUnavailable):
            await wakeups.wake()
        await line.mend()
        assert await bell.wait(LONG_S)  # the line is back: something may have been said meanwhile
        await once_back(wakeups.wake)
        assert await bell.wait(LONG_S)


async def test_a_subscription_can_begin_while_redis_is_away(line: Line, prefix: str) -> None:
    await line.cut()
    redis = line.client()
    async with Wakeups(redis, prefix).subscribe() as bell:
        assert not await bell.wait(0.01)
        await line.mend()
        assert await bell.wait(LONG_S)
