"""Finds views that fell behind because a worker died before it could write them, and rebuilds them from the instance.

Observation may have gaps; this closes them some seconds later. Nothing of the execution depends on it.
"""

from kernel.instances import Instances
from kernel.mutex import Mutex
from kernel.projections import Projections

PERIOD_S = 15.0
OLD_S = 5.0  # a view that changed within this time is not suspected
PAGE = 200


class Repairs:
    """The repair of views, by one of all workers in each period."""

    def __init__(self, instances: Instances, projections: Projections, mutex: Mutex) -> None:
        self._instances = instances
        self._projections = projections
        self._mutex = mutex
        self._after = ""

    async def run_in_turn(self) -> int:
        """Repair what is found now; how many views were behind."""
        return await self.run() if await self._mutex.take("views", PERIOD_S) else 0

    async def run(self) -> int:
        """Compare views that say `running` with their instances, and a page of those that say `waiting`."""
        running = await self._projections.unfinished(OLD_S, PAGE)
        waiting = await self._projections.waiting(self._after, PAGE)
        self._after = waiting[-1][0] if len(waiting) == PAGE else ""
        revisions = dict([*running, *waiting])
        behind = [
            one for one in await self._instances.several(list(revisions)) if one.revision > revisions[one.workflow_id]
        ]
        for instance in behind:
            await self._projections.repair(instance)
        return len(behind)
