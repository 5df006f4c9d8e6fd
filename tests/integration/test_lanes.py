"""The ready queue: whose turn it is, and where a workflow stands."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from redis.asyncio import Redis

from kernel.clock import Clock
from kernel.errors import BrokerUnavailable
from kernel.lanes import WEIGHTS, LaneFigures, Lanes, Popped
from kernel.wakeups import Wakeups
from tests.integration.line import Line, once_back

EARLIER = datetime.now(UTC) - timedelta(hours=1)


@pytest.fixture
def lanes(redis: Redis, prefix: str, clock: Clock) -> Lanes:
    return Lanes(redis, prefix, clock)


@pytest.fixture
async def line(server_urls: tuple[str, str], redis: Redis) -> AsyncIterator[Line]:
    """A line to the Redis whose keys the `redis` fixture removes."""
    async with Line(server_urls[1]) as line:
        yield line


async def fill(lanes: Lanes, *depths: int) -> None:
    """`depths[n]` due workflows in lane n, named `<lane>/<number>`."""
    for lane, depth in enumerate(depths):
        for number in range(depth):
            await lanes.enqueue(f"{lane}/{number:05}", lane, EARLIER + timedelta(milliseconds=number))


async def pop_lanes(lanes: Lanes, times: int) -> list[int]:
    """The lanes from which the next candidates come."""
    popped = [await lanes.pop() for _ in range(times)]
    return [int(one.workflow_id[0]) for one in popped if one.workflow_id]


async def test_queueing_may_wake_the_workers_in_the_same_step(redis: Redis, prefix: str, lanes: Lanes) -> None:
    wakeups = Wakeups(redis, prefix)
    async with wakeups.subscribe() as bell:
        await lanes.enqueue("w", 1, EARLIER)
        assert not await bell.wait(0.05)
        assert not await lanes.enqueue("w", 1, EARLIER, wake=wakeups.channel), "it stands there already"
        assert await bell.wait(20)


async def test_a_round_is_eight_six_four_two(lanes: Lanes) -> None:
    await fill(lanes, 40, 40, 40, 40)
    for _ in range(3):
        assert await pop_lanes(lanes, 20) == [0] * 8 + [1] * 6 + [2] * 4 + [3] * 2


async def test_the_state_of_a_round_is_shared_by_all_workers(lanes: Lanes, redis: Redis, prefix: str) -> None:
    await fill(lanes, 20, 20, 20, 20)
    workers = [Lanes(redis, prefix, Clock()) for _ in range(5)]
    popped = await asyncio.gather(*(pop_lanes(worker, 8) for worker in workers))
    assert Counter(lane for one in popped for lane in one) == {0: 16, 1: 12, 2: 8, 3: 4}


async def test_an_empty_lane_is_passed_over_at_once(lanes: Lanes) -> None:
    await fill(lanes, 0, 12, 0, 4)
    assert await pop_lanes(lanes, 16) == ([1] * 6 + [3] * 2) * 2


async def test_a_single_lane_has_every_turn(lanes: Lanes) -> None:
    await fill(lanes, 0, 0, 0, 15)
    assert await pop_lanes(lanes, 15) == [3] * 15


async def test_an_urgent_arrival_finds_its_turns_in_the_round_under_way(lanes: Lanes) -> None:
    await fill(lanes, 0, 20, 20, 20)
    assert await pop_lanes(lanes, 7) == [1] * 6 + [2]
    await fill(lanes, 10)
    assert await pop_lanes(lanes, 13) == [0] * 8 + [2] * 3 + [3] * 2


async def test_ten_thousand_urgent_arrivals_do_not_stop_the_last_lane(lanes: Lanes) -> None:
    await fill(lanes, 0, 0, 0, 6)
    await asyncio.gather(*(lanes_of_arrivals(lanes, start) for start in range(0, 10_000, 2_500)))
    popped = await pop_lanes(lanes, 30)
    assert Counter(popped) == {0: 24, 3: 6}
    assert popped.index(3) == WEIGHTS[0]


async def lanes_of_arrivals(lanes: Lanes, start: int) -> None:
    for number in range(start, start + 2_500):
        await lanes.enqueue(f"0/{number:05}", 0, EARLIER)


async def test_after_an_idle_moment_eight_of_lane_zero_go_first(lanes: Lanes) -> None:
    assert await lanes.pop() == Popped(None, None)
    await fill(lanes, 40, 40, 40, 40)
    assert await pop_lanes(lanes, 8) == [0] * 8
    assert await pop_lanes(lanes, 20) == [0] * 8 + [1] * 6 + [2] * 4 + [3] * 2


async def test_the_burst_window_closes_when_lane_zero_has_nothing_due(lanes: Lanes) -> None:
    await lanes.pop()
    await fill(lanes, 3, 20)
    await lanes.enqueue("0/later", 0, datetime.now(UTC) + timedelta(hours=1))
    assert await pop_lanes(lanes, 4) == [0, 0, 0, 1]
    await fill(lanes, 20)
    assert await pop_lanes(lanes, 13) == [0] * 8 + [1] * 5


async def test_a_look_at_nothing_due_opens_one_window_only(lanes: Lanes) -> None:
    await lanes.enqueue("2/later", 2, datetime.now(UTC) + timedelta(hours=1))
    for _ in range(3):
        assert (await lanes.pop()).workflow_id is None
    await fill(lanes, 30, 30)
    assert await pop_lanes(lanes, 22) == [0] * 16 + [1] * 6


async def test_an_idle_moment_ends_the_round_under_way(lanes: Lanes) -> None:
    await fill(lanes, 0, 5)
    assert await pop_lanes(lanes, 6) == [1] * 5
    await fill(lanes, 0, 20, 20)
    assert await pop_lanes(lanes, 10) == [1] * 6 + [2] * 4


async def test_within_a_lane_the_earliest_goes_first(lanes: Lanes) -> None:
    for name, minutes in (("b", 2), ("c", 3), ("a", 1)):
        await lanes.enqueue(name, 1, EARLIER + timedelta(minutes=minutes))
    assert [(await lanes.pop()).workflow_id for _ in range(3)] == ["a", "b", "c"]


async def test_what_is_not_yet_due_tells_how_long_to_sleep(lanes: Lanes, clock: Clock) -> None:
    for lane, minutes in enumerate((3, 1, 2)):
        await lanes.enqueue(f"{lane}", lane, datetime.now(UTC) + timedelta(minutes=minutes))
    popped = await lanes.pop()
    assert popped.workflow_id is None
    assert popped.next_in_s == pytest.approx(60, abs=10)
    clock.advance(timedelta(minutes=1))
    assert (await lanes.pop()).workflow_id == "1"


async def test_a_promoted_workflow_moves_and_keeps_its_earlier_time(lanes: Lanes) -> None:
    assert await lanes.enqueue("w", 3, EARLIER)
    assert await lanes.enqueue("w", 1, datetime.now(UTC) + timedelta(hours=1))
    assert [(figures.depth, figures.ready) for figures in await lanes.figures()] == [(0, 0), (1, 1), (0, 0), (0, 0)]


async def test_a_less_urgent_enqueue_is_ignored(lanes: Lanes) -> None:
    await lanes.enqueue("w", 1, datetime.now(UTC) + timedelta(hours=1))
    assert not await lanes.enqueue("w", 3, EARLIER)
    assert [figures.depth for figures in await lanes.figures()] == [0, 1, 0, 0]
    assert (await lanes.pop()).workflow_id is None


async def test_within_a_lane_the_earlier_time_stays(lanes: Lanes) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    assert await lanes.enqueue("w", 2, later)
    assert not await lanes.enqueue("w", 2, later + timedelta(hours=1))
    assert await lanes.enqueue("w", 2, EARLIER)
    assert not await lanes.enqueue("w", 2, later)
    assert (await lanes.pop()).workflow_id == "w"


async def test_a_popped_workflow_may_come_back_later_and_in_any_lane(lanes: Lanes) -> None:
    await lanes.enqueue("w", 0, EARLIER)
    assert (await lanes.pop()).workflow_id == "w"
    assert await lanes.enqueue("w", 3, datetime.now(UTC) + timedelta(hours=1))
    assert [figures.delayed for figures in await lanes.figures()] == [0, 0, 0, 1]


async def test_a_pause_counts_from_redis_own_now(lanes: Lanes, clock: Clock) -> None:
    await lanes.enqueue("a", 0, EARLIER, pause_s=60)
    assert (popped := await lanes.pop()).workflow_id is None
    assert 0 < (popped.next_in_s or 0) <= 60
    clock.advance(timedelta(seconds=60))
    assert (await lanes.pop()).workflow_id == "a"


async def test_no_two_workers_are_given_the_same_candidate(lanes: Lanes) -> None:
    await fill(lanes, 30, 30, 30, 30)

    async def work() -> list[str | None]:
        return [(await lanes.pop()).workflow_id for _ in range(15)]

    popped = [name for names in await asyncio.gather(*(work() for _ in range(8))) for name in names]
    assert len(set(popped)) == 120


async def test_figures_tell_ready_from_delayed(lanes: Lanes) -> None:
    await fill(lanes, 2, 1)
    await lanes.enqueue("0/later", 0, datetime.now(UTC) + timedelta(hours=1))
    urgent, next_lane, *others = await lanes.figures()
    assert (urgent.depth, urgent.ready, urgent.delayed) == (3, 2, 1)
    waiting_s = (datetime.now(UTC) - EARLIER).total_seconds()
    assert urgent.oldest_wait_s == pytest.approx(waiting_s, abs=60)
    assert (next_lane.depth, next_lane.ready, next_lane.delayed) == (1, 1, 0)
    assert others == [LaneFigures(2, 0, 0, 0, 0), LaneFigures(3, 0, 0, 0, 0)]


async def test_a_removed_workflow_is_not_popped(lanes: Lanes) -> None:
    await fill(lanes, 0, 0, 1)
    assert await lanes.remove("2/00000")
    assert not await lanes.remove("2/00000")
    assert await lanes.pop() == Popped(None, None)


async def test_after_all_is_lost_the_lanes_begin_again(lanes: Lanes, redis: Redis, prefix: str) -> None:
    await lanes.pop()
    await fill(lanes, 5, 5)
    await pop_lanes(lanes, 3)
    await redis.delete(*[key async for key in redis.scan_iter(match=f"*{prefix}:lanes*")])
    assert await lanes.pop() == Popped(None, None)
    await fill(lanes, 20, 20, 20, 20)
    assert Counter(await pop_lanes(lanes, 28)) == {0: 16, 1: 6, 2: 4, 3: 2}


async def test_a_time_is_kept_to_the_millisecond(lanes: Lanes, redis: Redis, prefix: str) -> None:
    due = datetime(2026, 12, 1, 4, 11, 28, 123_456, tzinfo=UTC)
    await lanes.enqueue("w", 0, due)
    assert await redis.zscore(f"{{{prefix}:lanes}}:0", "w") == 1796098288123


async def test_a_wrong_lane_or_a_naive_time_is_refused(lanes: Lanes) -> None:
    with pytest.raises(ValueError, match="0 \\(most urgent\\) to 3"):
        await lanes.enqueue("w", 4, EARLIER)
    with pytest.raises(ValueError, match="time zone"):
        await lanes.enqueue("w", 0, EARLIER.replace(tzinfo=None))


async def test_an_outage_is_named(line: Line, prefix: str, clock: Clock) -> None:
    redis = line.client()
    lanes = Lanes(redis, prefix, clock)
    await lanes.enqueue("w", 0, EARLIER)
    await line.cut()
    with pytest.raises(BrokerUnavailable, match="lanes_pop"):
        await lanes.pop()
    await line.mend()
    assert (await once_back(lanes.pop)).workflow_id == "w"
