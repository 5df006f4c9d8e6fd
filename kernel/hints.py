"""Recommendations to workers through Redis: best effort, never needed for correctness.

What is lost here is found again by the poll and the scan, so no fault of Redis reaches the caller.
"""

import logging
from collections.abc import Awaitable

from kernel.errors import BrokerUnavailable
from kernel.lanes import Lanes
from kernel.model import FAR_FUTURE, Instance
from kernel.wakeups import Wakeups

log = logging.getLogger(__name__)
EARLY_PAUSE_S = 0.1


class Hints:
    """Tells the workers' fleet which instance may be due, and when."""

    def __init__(self, lanes: Lanes, wakeups: Wakeups) -> None:
        self._lanes = lanes
        self._wakeups = wakeups
        self.refused = False
        """Whether the latest entry was not taken: what the lanes say is then not the whole truth (a full Redis)."""

    async def due(self, instance: Instance, *, pause_s: float = 0.0) -> None:
        """Enqueue for the instance's own time, or `pause_s` from now if that is later; not what no clock wakes."""
        await self._enqueue(instance, pause_s=pause_s)

    async def put_back(self, instance: Instance) -> None:
        """Enqueue again what could not be claimed yet.

        Where Redis's clock runs ahead of MongoDB's it is popped early until MongoDB agrees: not without pause.
        """
        await self.due(instance, pause_s=EARLY_PAUSE_S)

    async def ready(self, instance: Instance) -> None:
        """Enqueue and wake a worker, in one round trip; where it is not taken, the woken one looks in MongoDB."""
        if not await self._enqueue(instance, wake=self._wakeups.channel):
            await self.wake()

    async def wake(self) -> None:
        """Wake the workers: a permit or a slot came free."""
        await self._try(self._wakeups.wake())

    async def gone(self, workflow_id: str) -> None:
        """Take an instance out of the lanes that nobody need look at any more."""
        await self._try(self._lanes.remove(workflow_id))

    async def _enqueue(self, instance: Instance, *, pause_s: float = 0.0, wake: str = "") -> bool:
        """Whether it was taken; true also for what no clock brings a worker to."""
        when, priority = instance.claimable_time, instance.business_priority
        if when >= FAR_FUTURE or instance.ended:
            return True
        taken = await self._try(self._lanes.enqueue(instance.workflow_id, priority, when, pause_s=pause_s, wake=wake))
        self.refused = not taken
        return taken

    async def _try(self, call: Awaitable[object]) -> bool:
        try:
            await call
        except BrokerUnavailable as error:
            log.debug("a hint was lost: %s", error)
            return False
        return True
