"""Die before and after every durable write, in every shape that passes it; the next process carries on.

The points are those that `@boundary` registered: a new durable write is tested here from its first day. Pairs die a
second time while recovering: a seeded sample, or all of them with FULL=1.
"""

import os
import random
from datetime import timedelta

import pytest

from kernel.testing import LEASE_S, Crash, crash_at
from tests.crash.conftest import TRIED, check, emptied
from tests.crash.scenarios import KERNEL_POINTS, SCENARIOS
from tests.kernel_kit import Kit

FULL = bool(os.environ.get("FULL"))
SEED = int(os.environ.get("SEED", "20261201"))
SAMPLE = 60


async def die(kit: Kit, scenario: str, point: str, skip: int) -> bool:
    """Run the scenario until it dies at the point's passing number `skip`; whether it got there."""
    with crash_at(point, skip=skip) as death:
        try:
            await SCENARIOS[scenario](kit)
        except Crash:
            assert death.happened
    kit.parts.clock.advance(timedelta(seconds=LEASE_S + 1))
    return death.happened


@pytest.mark.parametrize("point", KERNEL_POINTS)
async def test_the_next_process_carries_on(point: str, kit: Kit, baselines) -> None:
    reached = [name for name, baseline in baselines.items() if baseline.passed[point]]
    assert reached, f"no scenario passes {point}: add one"
    for name in reached:
        for skip in sorted({0, baselines[name].passed[point] - 1}):
            await emptied(kit)
            died = await die(kit, name, point, skip)
            assert died or skip, "how often a wave is claimed depends on its timing; once is certain"
            await SCENARIOS[name](kit)
            await check(kit, baselines[name].outcome, f"{name}, dead at {point} (passing {skip + 1})")
            TRIED["deaths"] += 1


async def test_dying_again_while_recovering_changes_nothing(kit: Kit, baselines) -> None:
    pairs = [
        (name, first, second)
        for name, baseline in baselines.items()
        for first in sorted(baseline.passed)
        for second in sorted(baseline.passed)
    ]
    chosen = pairs if FULL else random.Random(SEED).sample(pairs, SAMPLE)
    for name, first, second in chosen:
        await emptied(kit)
        await die(kit, name, first, 0)
        await die(kit, name, second, 0)
        await SCENARIOS[name](kit)
        await check(kit, baselines[name].outcome, f"{name}, dead at {first} and then at {second} (SEED={SEED})")
        TRIED[f"of {len(pairs)} pairs of deaths (SEED={SEED})"] += 1
