"""The operators' acts, each with a reason and an entry in the audit list.

They go through the business service, so that a business object and its workflow agree afterwards.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec

from app.subscriptions import NotFailed, Subscriptions
from kernel import Clock, boundary
from kernel.driver import Database
from kernel.instances import Instances
from kernel.projections import Projections
from kernel.writes import literal, new_token, wrapped

SHOWN = 100
Doing = Callable[[str, str, str | None], Awaitable[bool]]


class AuditEntry(msgspec.Struct, frozen=True):
    """One act of an operator."""

    operator: str
    act: str
    reason: str
    changed: bool
    at: datetime


class Audit:
    """`audit`: who did what to which workflow, why, and whether it changed anything."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._collection = database["audit"]
        self._clock = clock

    async def ensure_indexes(self) -> None:
        """The index that a workflow's entries are found by."""
        await self._collection.create_index([("workflow_id", 1), ("at", -1)])

    async def of(self, workflow_id: str) -> list[AuditEntry]:
        """What was done to a workflow, the latest first."""
        async with wrapped():
            found = await self._collection.find({"workflow_id": workflow_id}).sort("at", -1).limit(SHOWN).to_list(SHOWN)
        return [msgspec.convert(one, AuditEntry) for one in found]

    @boundary
    async def enter(self, operator: str, act: str, workflow_id: str, reason: str, changed: bool) -> None:
        """Keep one entry."""
        said = {"operator": operator, "act": act, "workflow_id": workflow_id, "reason": reason, "changed": changed}
        entry = {name: literal(value) for name, value in said.items()} | {"at": self._clock.now}
        async with wrapped():
            await self._collection.update_one({"_id": new_token()}, [{"$set": entry}], upsert=True)


class Act:
    """One act: do it, then enter it in the audit list."""

    def __init__(self, name: str, doing: Doing, audit: Audit) -> None:
        self._name = name
        self._doing = doing
        self._audit = audit

    async def __call__(self, workflow_id: str, reason: str, operator: str, from_step: str | None = None) -> bool:
        """Whether anything changed. `from_step` is for a retry. Raises UnknownStep."""
        changed = await self._doing(workflow_id, reason, from_step)
        await self._audit.enter(operator, self._name, workflow_id, reason, changed)
        return changed


def operator_acts(
    subscriptions: Subscriptions, instances: Instances, projections: Projections, audit: Audit
) -> dict[str, Act]:
    """The acts that there are, by name."""

    async def supersede(workflow_id: str, reason: str, _: str | None) -> bool:
        return await subscriptions.supersede(workflow_id, reason)

    async def retry(workflow_id: str, _reason: str, from_step: str | None) -> bool:
        try:
            return await subscriptions.retry_workflow(workflow_id, from_step)
        except NotFailed:
            return False

    async def release(workflow_id: str, _reason: str, _: str | None) -> bool:
        return await instances.release_parked(workflow_id)

    async def repair(workflow_id: str, _reason: str, _: str | None) -> bool:
        found = await instances.get(workflow_id)
        if found is None:
            return False
        await projections.repair(found)
        return True

    doings: dict[str, Doing] = {"supersede": supersede, "retry": retry, "release": release, "repair": repair}
    return {name: Act(name, doing, audit) for name, doing in doings.items()}
