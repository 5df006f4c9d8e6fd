"""The limits of permits: a fact that an operator sets, so MongoDB keeps it; read at every acquire."""

from collections.abc import Mapping

from kernel.clock import Clock
from kernel.driver import Database
from kernel.faults import boundary
from kernel.permits import Limits
from kernel.writes import literal, wrapped


class PermitLimits:
    """`permit_limits`: one document per resource that an operator has changed; defaults for the others."""

    def __init__(self, database: Database, clock: Clock, defaults: Mapping[str, Limits]) -> None:
        self._collection = database["permit_limits"]
        self._clock = clock
        self.defaults = dict(defaults)

    async def of(self, resource: str) -> Limits:
        """The limits in force now. A resource that nobody configured is unlimited."""
        async with wrapped():
            found = await self._collection.find_one({"_id": resource})
        if found is None:
            return self.defaults.get(resource, Limits(0, 0))
        return Limits(found["max_concurrency"], found["max_starts_per_second"])

    @boundary
    async def change(self, resource: str, limits: Limits) -> None:
        """Set the limits; calls that hold a permit keep it."""
        changes = {
            "max_concurrency": literal(limits.max_concurrency),
            "max_starts_per_second": literal(limits.max_starts_per_second),
            "updated_at": self._clock.now,
        }
        async with wrapped():
            await self._collection.update_one({"_id": resource}, [{"$set": changes}], upsert=True)
