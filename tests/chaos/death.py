"""A process that dies by itself: at the n-th passing of one boundary, without any clean-up."""

import os

from kernel import faults


def arm() -> None:
    """Do what the environment says: CHAOS_CRASH_AT names the boundary, CHAOS_CRASH_PASSING counts from 1."""
    point, left = os.environ.get("CHAOS_CRASH_AT", ""), int(os.environ.get("CHAOS_CRASH_PASSING") or 1)

    async def hook(passed: str) -> None:
        nonlocal left
        if passed == point:
            left -= 1
            if left == 0:
                os._exit(137)

    if point:
        faults.arm(hook)
