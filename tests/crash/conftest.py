"""Fixtures of the tests that need the kernel's parts."""

import pytest

from kernel import Clock
from tests.kernel_kit import Kit, open_kit


@pytest.fixture
async def kit(db, redis, prefix: str, clock: Clock) -> Kit:
    return await open_kit(db, redis, prefix, clock)
