"""Die before and after every durable write, in every shape that passes it; the next process carries on.

The points are those that `@boundary` registered: a new durable write is tested here from its first day.
"""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from kernel import faults
from kernel.testing import LEASE_S, Crash, crash_at
from tests.crash.scenarios import SCENARIOS
from tests.kernel_kit import Kit, open_kit

NOT_THE_ENGINES = ("Intents.", "PermitLimits.", "Projections.beat", "Projections.forget", "Instances.claim_any")
UNREACHED = ("Instances.release_parked", "Store.renew", "Store.defer_finalizer", "Store.wake_step")

KERNEL_POINTS = [point for point in faults.points() if not point.startswith((*NOT_THE_ENGINES, *UNREACHED))]


async def outcome(kit: Kit) -> dict[str, Any]:
    """All that a run leaves behind and that no death may change."""
    instances = await kit.business.db["workflow_instances"].find({}).sort("_id", 1).to_list(100)
    objects = await kit.business.db["objects"].find({}).sort("_id", 1).to_list(100)
    return {
        "instances": [(i["biz_key"], i["status"], i["round"], i["run"], i["claim_token"]) for i in instances],
        "steps": [{n: s["status"] for n, s in i["steps"].items()} for i in instances],
        "objects": objects,
        "effects": await kit.business.effects(),
    }


async def emptied(kit: Kit) -> None:
    for name in await kit.business.db.list_collection_names():
        await kit.business.db[name].delete_many({})
    kit.business.entered.clear()


@pytest.fixture(scope="session")
async def passed(database, server_urls) -> dict[str, Counter]:
    """Which points each scenario passes, and how often, when nobody dies."""
    from redis.asyncio import Redis

    from kernel import Clock

    redis = Redis.from_url(server_urls[1])
    found = {}
    for name, scenario in SCENARIOS.items():
        kit = await open_kit(database, redis, f"baseline-{name}", Clock())
        await emptied(kit)
        with crash_at("nowhere") as death:
            await scenario(kit)
        found[name] = (Counter(death.passed), await outcome(kit))
        await emptied(kit)
    await redis.aclose()
    return found


@pytest.mark.parametrize("point", KERNEL_POINTS)
async def test_the_next_process_carries_on(point: str, kit: Kit, passed) -> None:
    reached = [name for name, (points, _) in passed.items() if points[point]]
    assert reached, f"no scenario passes {point}: add one"
    for name in reached:
        points, expected = passed[name]
        for skip in sorted({0, points[point] - 1}):
            await emptied(kit)
            with crash_at(point, skip=skip) as death, pytest.raises(Crash):
                await SCENARIOS[name](kit)
            assert death.happened
            kit.parts.clock.advance(timedelta(seconds=LEASE_S + 1))
            await SCENARIOS[name](kit)
            assert await outcome(kit) == expected, f"{name} differs after dying at {point} (passing {skip + 1})"
            await completed_once(kit)
            await nothing_failed_by_dying(kit)


async def completed_once(kit: Kit) -> None:
    """A step that completed never ran again in its run."""
    attempts = await kit.business.db["workflow_attempts"].find({"status": "completed"}).to_list(1000)
    times = Counter((a["biz_key"], a["run"], a["step"]) for a in attempts)
    assert set(times.values()) <= {1}


async def nothing_failed_by_dying(kit: Kit) -> None:
    """A death costs an attempt and no failure: the retry budget is the activity's own."""
    for instance in await kit.business.db["workflow_instances"].find({}).to_list(100):
        for step in instance["steps"].values():
            assert step["failures"] <= max(step["attempt"], 1)
