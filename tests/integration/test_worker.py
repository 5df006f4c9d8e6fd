"""Whole workers with their loops on: slots, lanes, takeover, and life without Redis."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from kernel import Clock, Status
from kernel.broker import open_redis
from kernel.hints import Hints
from kernel.lanes import Lanes
from kernel.worker import Pace, Worker
from tests.kernel_kit import Kit, open_kit
from tests.shapes import ready_signal

QUICK = Pace(lease_s=2.0, poll_s=0.2, scan_s=0.5, beat_s=0.2, recover_s=0.5)


def worker_of(kit: Kit, name: str, **options) -> Worker:
    return Worker(name, kit.parts, kit.definitions, kit.projections, kit.mutex, pace=QUICK, **options)


@asynccontextmanager
async def at_work(*workers: Worker) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(worker.run()) for worker in workers]
    try:
        yield
    finally:
        for worker in workers:
            worker.stop()
        await asyncio.gather(*tasks)


async def ended(kit: Kit, *workflow_ids: str) -> list:
    """The instances, once each of them has ended."""
    return [await kit.eventually(one, lambda found: found.ended) for one in workflow_ids]


async def test_two_workers_share_the_work_and_each_step_runs_once(kit: Kit) -> None:
    ids = [(await kit.start("linear", f"o{n}")).instance.workflow_id for n in range(30)]
    async with at_work(worker_of(kit, "A", slots=4), worker_of(kit, "B", slots=4)):
        found = await ended(kit, *ids)
    assert {one.status for one in found} == {Status.COMPLETED}
    assert len(kit.business.entered) == 30 * 4
    assert {one["_id"] for one in await kit.projections.workers()} == set(), "both said goodbye"


async def test_a_dead_workers_lease_is_taken_over_when_it_runs_out(kit: Kit) -> None:
    started = await kit.start("linear")
    dead = await kit.parts.instances.claim(
        started.instance.workflow_id, [("linear", started.instance.definition_fingerprint)], "dead", "D", 1.0
    )
    assert dead is not None
    async with at_work(worker_of(kit, "B")):
        [found] = await ended(kit, started.instance.workflow_id)
    assert found.status is Status.COMPLETED


async def test_timers_signals_and_yields_run_under_a_real_clock(kit: Kit) -> None:
    started = await kit.start("signal")
    async with at_work(worker_of(kit, "A")):
        await kit.eventually(started.instance.workflow_id, lambda found: found.status is Status.WAITING)
        await kit.start("bell", "bell-a")
        paged = await kit.start("yield")
        found = await ended(kit, started.instance.workflow_id, paged.instance.workflow_id)
    assert [one.status for one in found] == [Status.COMPLETED] * 2


@pytest.fixture
async def without_redis(db, prefix: str, clock: Clock) -> AsyncIterator[Kit]:
    """A kit whose Redis refuses every connection."""
    nobody = open_redis("redis://127.0.0.1:9")
    yield await open_kit(db, nobody, prefix, clock)
    await nobody.aclose()


async def test_without_redis_every_step_that_needs_no_permit_completes(without_redis: Kit) -> None:
    kit = without_redis
    shapes = ("linear", "retry", "yield", "failing", "cancel")
    ids = [(await kit.start(shape, shape)).instance.workflow_id for shape in shapes]
    async with at_work(worker_of(kit, "A")):
        found = await ended(kit, *ids)
    assert {one.type: str(one.status) for one in found} == {
        "linear": "completed",
        "retry": "completed",
        "yield": "completed",
        "failing": "failed",
        "cancel": "canceled",
    }


async def test_without_redis_a_permit_waits_says_so_and_goes_on_when_it_is_back(
    without_redis: Kit, db, redis, prefix: str, clock: Clock
) -> None:
    kit = without_redis
    started = await kit.start("permit")
    async with at_work(worker_of(kit, "A")):
        found = await kit.eventually(started.instance.workflow_id, lambda found: found.steps["one"].traffic_reason)
    step = found.steps["one"]
    assert step.traffic_reason == "unreachable"
    assert step.failures == step.attempt == 0
    back = await open_kit(db, redis, prefix, clock)
    assert (await back.run("permit")).status is Status.COMPLETED


async def test_what_redis_lost_and_who_missed_a_signal_is_found_by_the_scan(kit: Kit) -> None:
    due, waiter = await kit.start("linear"), await kit.start("signal", "w")
    await kit.fleet.claim_and_run(waiter.instance.workflow_id)
    await kit.parts.inbox.insert(ready_signal("w", "stored, and then its producer died"))
    for started in (due, waiter):
        await kit.parts.lanes.remove(started.instance.workflow_id)
    await worker_of(kit, "A").scan()
    found = {(await kit.parts.lanes.pop()).workflow_id for _ in range(2)}
    assert found == {due.instance.workflow_id, waiter.instance.workflow_id}
    woken = await kit.parts.instances.get(waiter.instance.workflow_id)
    assert woken.steps["one"].resume.signal_id == "stored, and then its producer died"


async def test_after_flushall_the_lanes_are_rebuilt_with_their_priorities(kit: Kit, redis, prefix: str) -> None:
    wanted = {0: 4, 1: 3, 2: 2, 3: 1}
    for priority, count in wanted.items():
        for number in range(count):
            await kit.start("linear", f"{priority}-{number}", priority=priority)
    await redis.delete(*[key async for key in redis.scan_iter(f"*{prefix}*")])
    await worker_of(kit, "A").scan()
    assert {one.lane: one.ready for one in await kit.parts.lanes.figures()} == wanted


async def test_a_redis_clock_that_runs_ahead_makes_no_worker_spin(kit: Kit, redis, prefix: str) -> None:
    ahead = Lanes(redis, prefix, Clock(24 * 3600 * 1000))
    kit.parts = replace(kit.parts, lanes=ahead, hints=Hints(ahead, kit.parts.wakeups))
    started = await kit.start("linear")
    dead = [("linear", started.instance.definition_fingerprint)]
    held = await kit.parts.instances.claim(started.instance.workflow_id, dead, "t1", "D", 60.0)
    await kit.parts.hints.due(held)
    assert await worker_of(kit, "A").fill() > 0, "popped a day early, it is not looked at again at once"


async def test_a_worker_whose_own_clock_is_wrong_queues_a_due_wait_as_due(kit: Kit, clock: Clock, monkeypatch) -> None:
    started = await kit.start("sleep")
    await kit.fleet.claim_and_run(started.instance.workflow_id)
    clock.advance(timedelta(minutes=2))
    await kit.parts.lanes.remove(started.instance.workflow_id)

    class Tomorrow(datetime):
        @classmethod
        def now(cls, tz=None) -> datetime:
            return datetime.now(tz) + timedelta(days=1)

    monkeypatch.setattr("kernel.clock.datetime", Tomorrow)
    await worker_of(kit, "A").scan()
    assert sum(lane.ready for lane in await kit.parts.lanes.figures()) == 1


async def test_a_workflow_that_no_worker_here_can_read_is_left_alone(kit: Kit) -> None:
    started = await kit.start("linear")
    await kit.business.db["workflow_instances"].update_one({}, {"$set": {"definition_fingerprint": "newer"}})
    worker = worker_of(kit, "A")
    await worker.fill()
    found = await kit.parts.instances.get(started.instance.workflow_id)
    assert (found.status, found.claim_token, found.steps["one"].attempt) == (Status.RUNNING, "", 0)
    assert kit.business.entered == []


async def test_a_run_that_kills_its_worker_again_and_again_is_parked_and_can_be_released(kit: Kit) -> None:
    started = await kit.start("linear")
    workflow_id = started.instance.workflow_id
    for _ in range(5):
        assert await kit.fleet.claim(workflow_id) is not None
        await kit.fleet.skip_to_due(workflow_id)
    assert await kit.fleet.claim(workflow_id) is None
    parked = await kit.parts.instances.get(workflow_id)
    assert parked.parked_at is not None
    assert await kit.parts.instances.release_parked(workflow_id)
    assert (await kit.run("linear")).status is Status.COMPLETED
