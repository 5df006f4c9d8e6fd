"""Workers that come back late: held before a durable write, released when others have moved on.

A late worker's own clock does not save us here: it still believes in its lease, so the conditions of the writes alone
must hold.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

from kernel import ClaimLost, KernelError, faults
from kernel.errors import ActivityError
from kernel.testing import LEASE_S, pause_at
from tests.crash.scenarios import SCENARIOS
from tests.kernel_kit import Kit


async def returns_after_the_end(kit: Kit, scenario: str, point: str, skip: int) -> bool:
    """Another worker finishes everything before the late one goes on; whether that one passed the point so often."""
    with pause_at(point, skip=skip) as pause:
        late = pause.worker(SCENARIOS[scenario](kit))
        try:
            if held_there := await _reaches(late, pause.reached):
                kit.parts.clock.advance(timedelta(seconds=LEASE_S + 1))
                await SCENARIOS[scenario](kit)
            return held_there
        finally:
            pause.released.set()
            with suppress(ClaimLost, ActivityError, KernelError):
                await late


class OneWrite:
    """Holds the first task that passes a point, and again at whatever it passes next: one write between the two."""

    def __init__(self, point: str, skip: int) -> None:
        self._point, self._left = point, skip
        self._held: asyncio.Task[Any] | None = None
        self.reached, self.released, self.moved_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def __call__(self, passed: str) -> None:
        if self._held is not None:
            if asyncio.current_task() is self._held:
                self.moved_on.set()
                await asyncio.Event().wait()
        elif passed == self._point:
            self._left -= 1
            if self._left < 0:
                self._held = task = asyncio.current_task()
                assert task is not None
                task.add_done_callback(lambda _: self.moved_on.set())
                self.reached.set()
                await self.released.wait()


async def returns_beside_another(kit: Kit, scenario: str, point: str, skip: int) -> tuple[Any, Any] | None:
    """Another worker has only just claimed when the late one writes: what is held before and after that write.

    None if the late one did not pass the point so often.
    """
    write = OneWrite(point, skip)
    faults.arm(write)
    late = asyncio.create_task(SCENARIOS[scenario](kit))
    try:
        if not await _reaches(late, write.reached):
            return None
        kit.parts.clock.advance(timedelta(seconds=LEASE_S + 1))
        for one in await kit.business.db["workflow_instances"].find({}).to_list(100):
            await kit.fleet.claim(one["_id"])
        before = await held(kit)
        write.released.set()
        await write.moved_on.wait()
        return before, await held(kit)
    finally:
        late.cancel()
        await asyncio.gather(late, return_exceptions=True)
        faults.arm(None)


async def _reaches(worker: asyncio.Task[None], point: asyncio.Event) -> bool:
    """Whether it comes there before its end: steps that run beside each other need not take the order of last time."""
    standing = asyncio.create_task(point.wait())
    await asyncio.wait({worker, standing}, return_when=asyncio.FIRST_COMPLETED)
    standing.cancel()
    return point.is_set()


async def held(kit: Kit) -> list[dict[str, Any]]:
    """The instances that somebody holds a claim on."""
    return await kit.business.db["workflow_instances"].find({"claim_token": {"$ne": ""}}).sort("_id", 1).to_list(100)
