"""Hold a worker just before a durable write, let another one go on, release it: nothing changes."""

import pytest

from tests.crash.conftest import TRIED, check, emptied
from tests.crash.haunting import returns_after_the_end, returns_beside_another
from tests.crash.scenarios import KERNEL_POINTS, WITHOUT_CLAIM
from tests.kernel_kit import Kit

MOMENTS = [point for point in KERNEL_POINTS if point.endswith(":before")]
BESIDE = [point for point in MOMENTS if not point.startswith(WITHOUT_CLAIM)]


@pytest.mark.parametrize("point", MOMENTS)
async def test_a_worker_that_returns_after_the_end_changes_nothing(point: str, kit: Kit, baselines) -> None:
    reached = [name for name, baseline in baselines.items() if baseline.passed[point]]
    assert reached
    for name in reached:
        for skip in sorted({0, baselines[name].passed[point] - 1}):
            await emptied(kit)
            assert await returns_after_the_end(kit, name, point, skip) or skip, "once is certain"
            await check(kit, baselines[name].outcome, f"{name}, held at {point} (passing {skip + 1})")
            TRIED["late workers"] += 1


@pytest.mark.parametrize("point", BESIDE)
async def test_a_worker_that_returns_beside_another_writes_nothing(point: str, kit: Kit, baselines) -> None:
    reached = [name for name, baseline in baselines.items() if baseline.passed[point]]
    assert reached
    for name in reached:
        for skip in sorted({0, baselines[name].passed[point] - 1}):
            await emptied(kit)
            seen = await returns_beside_another(kit, name, point, skip)
            assert seen or skip, "once is certain"
            before, after = seen or (None, None)
            assert before == after, f"{name}: a late {point} wrote under somebody else's claim"
            TRIED["late workers beside another"] += 1
