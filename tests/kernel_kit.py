"""A kernel on the test's database and Redis, with every shape registered."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernel import Clock, Instance, Limits, Parts, Started, open_parts, workflow_id_of
from kernel.candidates import Candidates
from kernel.instances import Instances
from kernel.mutex import Mutex
from kernel.projections import Projections
from kernel.testing import Fleet
from tests.desk import Desk
from tests.shapes import Business, definitions


@dataclass
class Kit:
    """Everything a kernel test touches."""

    parts: Parts
    projections: Projections
    mutex: Mutex
    business: Business
    fleet: Fleet
    definitions: list
    desk: Desk

    async def start(self, shape: str, object_id: str = "a", round: int = 1, priority: int = 1) -> Started:
        values = await self.business.open(object_id, round)
        return await self.parts.publisher.start_or_resume(
            shape, f"{shape}:{object_id}", values, round=round, priority=priority
        )

    async def run(self, shape: str, object_id: str = "a") -> Instance:
        return await self.fleet.run(workflow_id_of(f"{shape}:{object_id}"))

    async def run_unseen(self, shape: str, object_id: str = "a") -> Instance:
        """One claim whose worker dies before it writes a single observation."""
        workflow_id = workflow_id_of(f"{shape}:{object_id}")
        execution = await self.fleet.claim(workflow_id)
        assert execution is not None
        await execution.run()
        found = await self.parts.instances.get(workflow_id)
        assert found is not None
        return found

    async def eventually(self, workflow_id: str, holds: Callable[[Instance], object]) -> Instance:
        """The instance, once something holds of it that a running worker brings about."""
        return await eventually(self.parts.instances, workflow_id, holds)

    async def run_claims(self, shape: str, claims: int, object_id: str = "a") -> None:
        """So many claims at the present time."""
        for _ in range(claims):
            await self.fleet.claim_and_run(workflow_id_of(f"{shape}:{object_id}"))


async def eventually(instances: Instances, workflow_id: str, holds: Callable[[Instance], object]) -> Instance:
    """The instance, once something holds of it that a running worker brings about."""
    while True:
        found = await instances.get(workflow_id)
        if found is not None and holds(found):
            return found
        await asyncio.sleep(0.02)


async def open_kit(db: Any, redis: Any, prefix: str, clock: Clock) -> Kit:
    """The kit, its indexes made."""
    limits = {"narrow": Limits(1, 0)}
    plans: list = []
    parts = open_parts(db, redis, plans, prefix=prefix, clock=clock, limits=limits)
    business = Business(db)
    made = definitions(business, parts)
    parts.publisher.register(*(definition.plan for definition in made))
    projections = Projections(db, clock)
    await parts.ensure_indexes()
    await projections.ensure_indexes()
    mutex = Mutex(redis, prefix)
    desk = Desk(parts, business, Candidates(redis, prefix, "objects", parts.clock), mutex)
    return Kit(parts, projections, mutex, business, Fleet(parts, made, projections), made, desk)
