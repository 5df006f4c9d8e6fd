"""Permits: neither limit is ever exceeded, and nothing a dead worker held is lost."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from itertools import pairwise

import pytest
from redis.asyncio import Redis

from kernel.clock import Clock
from kernel.errors import BrokerUnavailable
from kernel.permits import LATEST_S, SOONEST_S, Grant, Limits, PermitFigures, Permits, Refusal
from tests.integration.line import Line, once_back

LEASE_S = 30
ONE_AT_A_TIME = Limits(max_concurrency=1)
UNLIMITED = Limits()


@pytest.fixture
def permits(redis: Redis, prefix: str, clock: Clock) -> Permits:
    return Permits(redis, prefix, clock, LEASE_S)


@pytest.fixture
async def line(server_urls: tuple[str, str], redis: Redis) -> AsyncIterator[Line]:
    """A line to the Redis whose keys the `redis` fixture removes."""
    async with Line(server_urls[1]) as line:
        yield line


async def ask(permits: Permits, owner: str, limits: Limits, token: str = "t1") -> Grant | Refusal:
    return await permits.acquire("asr", owner, token, limits)


async def starts(permits: Permits, number: int, limits: Limits, name: str = "w") -> int:
    """How many of `number` new owners are granted a start."""
    answers = [await ask(permits, f"{name}{n}/s", limits) for n in range(number)]
    return sum(isinstance(answer, Grant) and answer.started for answer in answers)


def at_most_at_once(log: list[dict[str, float]]) -> int:
    """The largest number of grants that overlap."""
    changes = sorted([(grant["since"], 1) for grant in log] + [(grant["until"], -1) for grant in log])
    running, most = 0, 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return most


async def test_sixteen_workers_in_four_processes_never_exceed_either_limit(
    server_urls: tuple[str, str], redis: Redis, prefix: str, permits: Permits
) -> None:
    tasks, rounds, concurrency, rate = 4, 4, 5, 25
    arguments = [str(value) for value in (tasks, rounds, concurrency, rate)]
    program = [sys.executable, "-m", "tests.integration.permit_contender", server_urls[1], prefix]
    contenders = [
        await asyncio.create_subprocess_exec(*program, f"p{n}", *arguments, stdout=asyncio.subprocess.PIPE)
        for n in range(4)
    ]
    outputs = [output for output, _ in await asyncio.gather(*(one.communicate() for one in contenders))]
    log = [grant for output in outputs for grant in json.loads(output)]
    assert len(log) == 4 * tasks * rounds
    assert at_most_at_once(log) <= concurrency
    times = sorted(grant["granted_at_ms"] for grant in log)
    assert all(later - earlier >= 1000 for earlier, later in zip(times, times[rate:], strict=False))
    assert (await permits.figures("asr")).in_use == 0


async def test_concurrency_is_bounded_and_a_release_makes_room(permits: Permits) -> None:
    limits = Limits(max_concurrency=2)
    assert await starts(permits, 5, limits) == 2
    assert await permits.release("asr", "w0/s", "t1")
    assert isinstance(await ask(permits, "late/s", limits), Grant)
    assert isinstance(await ask(permits, "later/s", limits), Refusal)


async def test_starts_are_bounded_in_every_window_of_one_second(permits: Permits, clock: Clock) -> None:
    limits, granted = Limits(max_starts_per_second=3), list[int]()
    for number in range(60):
        answer = await ask(permits, f"w{number}/s", limits)
        if isinstance(answer, Grant):
            granted.append(answer.granted_at_ms)
        clock.advance(timedelta(milliseconds=97))
    assert len(granted) >= 15
    assert all(later - earlier >= 1000 for earlier, later in zip(granted, granted[3:], strict=False))


@pytest.mark.parametrize(("rate", "window_s"), [(0.5, 2.0), (0.1, 10.0), (1.0, 1.0)])
async def test_a_fractional_rate_spaces_single_starts(
    permits: Permits, clock: Clock, rate: float, window_s: float
) -> None:
    limits, granted = Limits(max_starts_per_second=rate), list[int]()
    for number in range(50):
        answer = await ask(permits, f"w{number}/s", limits)
        if isinstance(answer, Grant):
            granted.append(answer.granted_at_ms)
        clock.advance(timedelta(seconds=window_s / 7))
    assert len(granted) >= 6
    assert all(later - earlier >= window_s * 1000 for earlier, later in pairwise(granted))


async def test_a_fraction_above_one_is_rounded_down(permits: Permits) -> None:
    assert await starts(permits, 5, Limits(max_starts_per_second=2.9)) == 2


async def test_a_refusal_takes_neither_a_place_nor_a_start(permits: Permits, clock: Clock) -> None:
    limits = Limits(max_concurrency=1, max_starts_per_second=2)
    assert await starts(permits, 4, limits) == 1
    assert await permits.figures("asr") == PermitFigures(in_use=1, starts_last_second=1, waiting=3)
    await permits.release("asr", "w0/s", "t1")
    assert await starts(permits, 1, limits, "next") == 1
    await permits.release("asr", "next0/s", "t1")
    assert await starts(permits, 1, limits, "third") == 0
    assert (await permits.figures("asr")).in_use == 0
    clock.advance(timedelta(seconds=1))
    assert await starts(permits, 1, limits, "third") == 1


async def test_both_limits_off_refuse_nobody_and_still_count(permits: Permits) -> None:
    assert await starts(permits, 40, UNLIMITED) == 40
    assert (await permits.figures("asr")).in_use == 40


async def test_the_same_claim_renews_and_a_new_claim_takes_over_without_a_start(permits: Permits) -> None:
    limits = Limits(max_concurrency=1, max_starts_per_second=1)
    answers = [await ask(permits, "w/s", limits, token) for token in ("t1", "t1", "t2")]
    assert [isinstance(answer, Grant) and answer.started for answer in answers] == [True, False, False]
    assert await permits.figures("asr") == PermitFigures(in_use=1, starts_last_second=1, waiting=0)


async def test_a_claim_that_was_taken_over_can_neither_renew_nor_release(permits: Permits) -> None:
    await ask(permits, "w/s", ONE_AT_A_TIME, "t1")
    await ask(permits, "w/s", ONE_AT_A_TIME, "t2")
    assert not await permits.renew("asr", "w/s", "t1")
    assert not await permits.release("asr", "w/s", "t1")
    assert isinstance(await ask(permits, "other/s", ONE_AT_A_TIME), Refusal)
    assert await permits.release("asr", "w/s", "t2")


async def test_the_permit_of_a_killed_holder_returns_after_its_lease(
    permits: Permits, clock: Clock, redis: Redis, prefix: str
) -> None:
    await ask(permits, "killed/s", ONE_AT_A_TIME)
    clock.advance(timedelta(seconds=LEASE_S - 1))
    assert isinstance(await ask(permits, "next/s", ONE_AT_A_TIME), Refusal)
    clock.advance(timedelta(seconds=1))
    assert isinstance(await ask(permits, "next/s", ONE_AT_A_TIME), Grant)
    assert (await permits.figures("asr")).in_use == 1
    assert await redis.hkeys(f"{{{prefix}:permit:asr}}:tokens") == [b"next/s"]


async def test_a_renewed_permit_outlives_its_first_lease(permits: Permits, clock: Clock) -> None:
    await ask(permits, "w/s", ONE_AT_A_TIME)
    for _ in range(4):
        clock.advance(timedelta(seconds=LEASE_S / 3))
        assert await permits.renew("asr", "w/s", "t1")
    assert isinstance(await ask(permits, "other/s", ONE_AT_A_TIME), Refusal)


async def test_a_place_is_kept_over_a_sleep_and_a_lease_beyond(permits: Permits, clock: Clock) -> None:
    await ask(permits, "w/s", ONE_AT_A_TIME)
    assert await permits.renew("asr", "w/s", "t1", until_s=600)
    assert await permits.renew("asr", "w/s", "t1")
    assert isinstance(await ask(permits, "w/s", ONE_AT_A_TIME), Grant)
    clock.advance(timedelta(seconds=600 + LEASE_S - 1))
    assert isinstance(await ask(permits, "other/s", ONE_AT_A_TIME), Refusal)
    answer = await ask(permits, "w/s", ONE_AT_A_TIME, "t2")
    assert isinstance(answer, Grant)
    assert not answer.started
    clock.advance(timedelta(seconds=LEASE_S))
    assert isinstance(await ask(permits, "other/s", ONE_AT_A_TIME), Grant)


async def test_a_lowered_limit_stops_new_starts_only(permits: Permits) -> None:
    assert await starts(permits, 4, Limits(max_concurrency=4)) == 4
    lowered = Limits(max_concurrency=2)
    assert await permits.renew("asr", "w3/s", "t1")
    assert isinstance(await ask(permits, "w3/s", lowered, "t2"), Grant)
    for number in (0, 1):
        await permits.release("asr", f"w{number}/s", "t1")
        assert isinstance(await ask(permits, "new/s", lowered), Refusal)
    await permits.release("asr", "w2/s", "t1")
    assert isinstance(await ask(permits, "new/s", lowered), Grant)


async def test_resources_do_not_share_their_limits(permits: Permits) -> None:
    assert isinstance(await permits.acquire("asr", "w/s", "t1", ONE_AT_A_TIME), Grant)
    assert isinstance(await permits.acquire("tenant:7", "w/s", "t1", ONE_AT_A_TIME), Grant)


async def test_a_refusal_says_when_to_ask_and_how_many_are_ahead(permits: Permits) -> None:
    await ask(permits, "holder/s", ONE_AT_A_TIME)
    answers = [await ask(permits, f"w{n}/s", ONE_AT_A_TIME) for n in range(40)]
    refusals = [answer for answer in answers if isinstance(answer, Refusal)]
    assert [refusal.ahead for refusal in refusals] == list(range(40))
    assert all(SOONEST_S <= refusal.retry_in_s <= LATEST_S for refusal in refusals)
    assert refusals[0].retry_in_s <= 0.6
    assert refusals[-1].retry_in_s == LATEST_S
    again = await ask(permits, "w0/s", ONE_AT_A_TIME)
    assert isinstance(again, Refusal)
    assert again.ahead == 0


async def test_a_rate_refusal_points_at_the_next_allowed_start(permits: Permits, clock: Clock) -> None:
    limits = Limits(max_starts_per_second=0.2)
    await ask(permits, "w/s", limits)
    clock.advance(timedelta(seconds=2))
    first, second = await ask(permits, "a/s", limits), await ask(permits, "b/s", limits)
    assert isinstance(first, Refusal)
    assert isinstance(second, Refusal)
    assert 2.5 <= first.retry_in_s <= 3 * 1.2
    assert 7.5 <= second.retry_in_s <= 8 * 1.2


async def test_a_place_that_lapses_soon_is_not_waited_for_much_longer(permits: Permits, clock: Clock) -> None:
    await ask(permits, "dead/s", ONE_AT_A_TIME)
    for number in range(20):
        await ask(permits, f"w{number}/s", ONE_AT_A_TIME)
    clock.advance(timedelta(seconds=LEASE_S - 2))
    answer = await ask(permits, "last/s", ONE_AT_A_TIME)
    assert isinstance(answer, Refusal)
    assert answer.retry_in_s <= 2 * 1.2


async def test_a_waiter_leaves_the_queue_when_granted_and_when_silent(permits: Permits, clock: Clock) -> None:
    await ask(permits, "holder/s", ONE_AT_A_TIME)
    await ask(permits, "canceled/s", ONE_AT_A_TIME)
    clock.advance(timedelta(seconds=45))
    await permits.acquire("asr", "holder/s", "t1", ONE_AT_A_TIME)
    await ask(permits, "patient/s", ONE_AT_A_TIME)
    assert (await permits.figures("asr")).waiting == 2
    clock.advance(timedelta(seconds=20))
    assert (await permits.figures("asr")).waiting == 1
    answer = await ask(permits, "patient/s", ONE_AT_A_TIME)
    assert isinstance(answer, Refusal)
    assert answer.ahead == 0
    await permits.release("asr", "holder/s", "t1")
    await ask(permits, "patient/s", ONE_AT_A_TIME)
    assert (await permits.figures("asr")).waiting == 0


async def lose(redis: Redis, prefix: str) -> None:
    """What FLUSHALL does to permits."""
    await redis.delete(*[key async for key in redis.scan_iter(match=f"*{prefix}:permit*")])


async def test_holders_enter_themselves_again_after_redis_lost_everything(
    permits: Permits, redis: Redis, prefix: str
) -> None:
    limits = Limits(max_concurrency=2)
    assert await starts(permits, 2, limits, "old") == 2
    await lose(redis, prefix)
    assert await starts(permits, 1, limits, "new") == 1
    for number in (0, 1):
        assert await permits.renew("asr", f"old{number}/s", "t1")
    assert (await permits.figures("asr")).in_use == 3
    assert await starts(permits, 1, limits, "next") == 0


async def test_a_renewal_behind_the_release_does_not_take_the_place_again(permits: Permits) -> None:
    await ask(permits, "w/s", ONE_AT_A_TIME)
    assert await permits.release("asr", "w/s", "t1")
    assert not await permits.renew("asr", "w/s", "t1")
    assert not await permits.release("asr", "w/s", "t1")
    assert (await permits.figures("asr")).in_use == 0
    assert isinstance(await ask(permits, "w/s", ONE_AT_A_TIME), Grant)
    assert await permits.renew("asr", "w/s", "t1")


async def test_a_clock_set_back_holds_starts_up_for_one_window_at_most(permits: Permits, clock: Clock) -> None:
    limits = Limits(max_starts_per_second=1)
    clock.advance(timedelta(hours=1))
    assert await starts(permits, 1, limits, "before") == 1
    clock.advance(timedelta(hours=-1))
    assert await starts(permits, 1, limits, "after") == 1


async def test_nothing_stays_in_redis_of_a_resource_nobody_uses(permits: Permits, redis: Redis, prefix: str) -> None:
    await starts(permits, 3, Limits(max_concurrency=2))
    await permits.release("asr", "w0/s", "t1")
    keys = [key async for key in redis.scan_iter(match=f"*{prefix}:permit*")]
    assert len(keys) == 6
    assert all([0 < await redis.pttl(key) <= 120_000 for key in keys])


async def test_without_redis_nobody_is_granted_and_holders_are_told(line: Line, prefix: str, clock: Clock) -> None:
    redis = line.client()
    permits = Permits(redis, prefix, clock, LEASE_S)
    await ask(permits, "w/s", UNLIMITED)
    await line.cut()
    answer = await ask(permits, "other/s", UNLIMITED)
    assert isinstance(answer, Refusal)
    assert answer.reason == "unreachable"
    assert SOONEST_S <= answer.retry_in_s <= LATEST_S
    with pytest.raises(BrokerUnavailable, match="permit_renew"):
        await permits.renew("asr", "w/s", "t1")
    await line.mend()
    assert await once_back(partial(permits.renew, "asr", "w/s", "t1"))
