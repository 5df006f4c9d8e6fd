"""Hold a worker just before a durable write, let another one finish, release it: nothing changes.

The zombie's own clock does not save us here: its lease is over for the database only, so that the conditions of the
writes alone must hold.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta

import pytest

from kernel import ClaimLost, KernelError, faults
from kernel.errors import ActivityError
from kernel.testing import LEASE_S, pause_at
from tests.crash.conftest import check, emptied
from tests.crash.scenarios import ELSEWHERE, SCENARIOS
from tests.kernel_kit import Kit

MOMENTS = [point for point in faults.points() if point.endswith(":before") and not point.startswith(ELSEWHERE)]


@pytest.mark.parametrize("point", MOMENTS)
async def test_a_worker_that_returns_late_changes_nothing(point: str, kit: Kit, baselines) -> None:
    reached = [name for name, baseline in baselines.items() if baseline.passed[point]]
    assert reached
    for name in reached:
        for skip in sorted({0, baselines[name].passed[point] - 1}):
            await emptied(kit)
            await haunt(kit, name, point, skip)
            await check(kit, baselines[name].outcome, f"{name}, held at {point} (passing {skip + 1})")


async def haunt(kit: Kit, scenario: str, point: str, skip: int) -> None:
    """One scenario with a zombie in it."""
    with pause_at(point, skip=skip) as pause:
        zombie = asyncio.create_task(SCENARIOS[scenario](kit))
        try:
            await pause.reached.wait()
            kit.parts.clock.advance(timedelta(seconds=LEASE_S + 1))
            await SCENARIOS[scenario](kit)
        finally:
            pause.released.set()
            with suppress(ClaimLost, ActivityError, KernelError):
                await zombie
