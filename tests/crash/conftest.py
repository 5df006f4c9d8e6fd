"""The matrices' common ground: what each scenario passes and leaves behind when nobody dies."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from redis.asyncio import Redis

from kernel import Clock
from kernel.testing import crash_at
from tests.crash.scenarios import KERNEL_POINTS, SCENARIOS
from tests.kernel_kit import Kit, open_kit

TRIED: Counter[str] = Counter()
"""What this run tried and found well: deaths, pairs of deaths, hauntings."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The figures of the matrices, where they ran."""
    if TRIED:
        points, shapes = len(KERNEL_POINTS), len(SCENARIOS)
        told = ", ".join(f"{count} {what}" for what, count in TRIED.items())
        terminalreporter.line(f"crash matrix: {points} points x {shapes} scenarios: {told}; all recovered")


@dataclass(frozen=True)
class Baseline:
    """A scenario that nobody disturbed: how often it passed each point, and its outcome."""

    passed: Counter[str]
    outcome: dict[str, Any]


@pytest.fixture
async def kit(db, redis, prefix: str, clock: Clock) -> Kit:
    return await open_kit(db, redis, prefix, clock)


@pytest.fixture(scope="session")
async def baselines(database, server_urls) -> AsyncIterator[dict[str, Baseline]]:
    redis = Redis.from_url(server_urls[1])
    found = {}
    for name, scenario in SCENARIOS.items():
        kit = await open_kit(database, redis, f"baseline-{name}", Clock())
        await emptied(kit)
        with crash_at("nowhere") as death:
            await scenario(kit)
        found[name] = Baseline(Counter(death.passed), await outcome(kit))
        await emptied(kit)
    yield found
    await redis.aclose()


async def outcome(kit: Kit) -> dict[str, Any]:
    """All that a run leaves behind and that no death may change."""
    instances = await kit.business.db["workflow_instances"].find({}).sort("_id", 1).to_list(100)
    objects = await kit.business.db["objects"].find({}).sort("_id", 1).to_list(100)
    return {
        "instances": [(i["biz_key"], i["status"], i["round"], i["run"], i["claim_token"]) for i in instances],
        "steps": [{n: s["status"] for n, s in i["steps"].items()} for i in instances],
        "objects": [_without_times(one) for one in objects],
        "effects": await kit.business.effects(),
    }


def _without_times(found: dict[str, Any]) -> dict[str, Any]:
    """A business object; of its dispatch intent what no death may change."""
    intent = found.pop("workflow_dispatch", {})
    return {**found, "dispatch": (intent.get("status"), intent.get("fencing_token"))}


async def emptied(kit: Kit) -> None:
    """A fresh world on the same servers."""
    for name in await kit.business.db.list_collection_names():
        await kit.business.db[name].delete_many({})
    kit.business.entered.clear()


async def check(kit: Kit, expected: dict[str, Any], what: str) -> None:
    """The invariants of a finished scenario, whatever happened on the way."""
    assert await outcome(kit) == expected, what
    attempts = await kit.business.db["workflow_attempts"].find({"status": "completed"}).to_list(1000)
    times = Counter((a["biz_key"], a["run"], a["step"]) for a in attempts)
    assert set(times.values()) <= {1}, f"{what}: a completed step ran again"
    for instance in await kit.business.db["workflow_instances"].find({}).to_list(100):
        for name, step in instance["steps"].items():
            assert step["failures"] <= max(step["attempt"], 1), f"{what}: dying counted as a failure of {name}"
