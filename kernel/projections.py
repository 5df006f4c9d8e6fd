"""The operators' collections: `workflow_attempts` and `workflow_snapshots`, written in batches, read by pages.

Nothing on the execution path reads them, and no page reads `workflow_instances` in bulk.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from pymongo import ASCENDING, DESCENDING, UpdateOne

from kernel.clock import Clock
from kernel.driver import Database
from kernel.faults import boundary
from kernel.model import Instance, Status, StepStatus
from kernel.ready import current_step
from kernel.writes import Document, literal, plain, wrapped


class Change(Protocol):
    """What an event says of one attempt."""

    @property
    def step(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def set(self) -> Document: ...
    @property
    def add(self) -> dict[str, int]: ...


SILENT_S = 10.0
REMEMBERED_S = 3600.0


class Projections:
    """Snapshots (one per biz_key), attempts (one per biz_key, run, step and attempt) and the workers' beats."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._snapshots = database["workflow_snapshots"]
        self._attempts = database["workflow_attempts"]
        self._workers = database["workers"]
        self._clock = clock

    async def ensure_indexes(self) -> None:
        """Indexes of the lists and filters."""
        await self._snapshots.create_index([("workflow_id", ASCENDING)])
        await self._snapshots.create_index([("updated_at", DESCENDING)])
        await self._snapshots.create_index([("type", ASCENDING), ("status", ASCENDING), ("updated_at", DESCENDING)])
        await self._snapshots.create_index([("input.$**", ASCENDING)])
        await self._attempts.create_index([("workflow_id", ASCENDING), ("run", ASCENDING), ("started_at", ASCENDING)])

    # ---- writing ----

    @boundary
    async def write(self, events: Sequence[tuple[Instance, Change | None]]) -> None:
        """Write a batch: the newest snapshot of each instance, all changes of an attempt in one update.

        After an unknown outcome write the same batch again, not a longer one: an attempt's sums are guarded by the
        revision of its last change in the batch.
        """
        newest = {instance.biz_key: instance for instance, _ in sorted(events, key=lambda event: event[0].revision)}
        attempts: dict[str, tuple[Instance, Document, Counter[str]]] = {}
        for instance, change in events:
            if change is not None:
                key = attempt_id(instance, change.step, change.attempt)
                _, fields, sums = attempts.get(key, (instance, {}, Counter[str]()))
                known = {"step": change.step, "attempt": change.attempt}
                sums.update(change.add)
                attempts[key] = instance, fields | known | change.set, sums
        async with wrapped():
            if attempts:
                updates = [_attempt_update(key, *merged) for key, merged in attempts.items()]
                await self._attempts.bulk_write(updates, ordered=False)
            if newest:
                await self._snapshots.bulk_write([_snapshot_update(one) for one in newest.values()], ordered=False)

    @boundary
    async def beat(self, worker: str, slots: int, busy: int, dropped: int, depth: int) -> None:
        """Say that a worker is alive, and how its slots and its observer stand."""
        values = {"slots": slots, "busy": busy, "dropped": dropped, "observer_depth": depth}
        changes = {name: literal(value) for name, value in values.items()} | {"beat_at": self._clock.now}
        async with wrapped():
            await self._workers.update_one({"_id": worker}, [{"$set": changes}], upsert=True)

    @boundary
    async def forget_worker(self, worker: str) -> None:
        """Remove a worker that said goodbye."""
        async with wrapped():
            await self._workers.delete_one({"_id": worker})

    async def repair(self, instance: Instance) -> None:
        """Rebuild an ended workflow's views from the instance: its snapshot and each step's last attempt."""
        rebuilt = [(instance, _last_attempt(instance, name)) for name in instance.step_order]
        await self.write([*((one, change) for one, change in rebuilt if change.attempt), (instance, None)])

    # ---- reading ----

    async def snapshots(
        self,
        type: str | None = None,
        status: str | None = None,
        step: str | None = None,
        q: str | None = None,
        limit: int = 50,
        before: datetime | None = None,
    ) -> list[Document]:
        """Snapshots, latest change first. `q` is text of a workflow id, biz_key or error; `before` an updated_at."""
        given = {"type": type, "status": status, "step": step}
        condition: Document = {name: value for name, value in given.items() if value}
        if q:
            text = {"$regex": re.escape(q), "$options": "i"}
            condition["$or"] = [{"_id": text}, {"workflow_id": text}, {"error": text}]
        if before:
            condition["updated_at"] = {"$lt": before}
        async with wrapped():
            return await self._snapshots.find(condition).sort("updated_at", DESCENDING).limit(limit).to_list(limit)

    async def snapshot(self, workflow_id: str) -> Document | None:
        """The snapshot of one workflow."""
        async with wrapped():
            return await self._snapshots.find_one({"workflow_id": workflow_id})

    async def with_input(self, field: str, values: Sequence[str], type: str, limit: int) -> list[Document]:
        """Snapshots of one type whose input has one of these values in a field, the oldest first."""
        condition = {f"input.{field}": {"$in": [*values]}, "type": type}
        async with wrapped():
            return await self._snapshots.find(condition).sort("created_at", ASCENDING).limit(limit).to_list(limit)

    async def attempts(self, workflow_id: str) -> list[Document]:
        """All attempts of a workflow, in the order they began."""
        order = [("run", ASCENDING), ("started_at", ASCENDING), ("attempt", ASCENDING)]
        async with wrapped():
            return await self._attempts.find({"workflow_id": workflow_id}).sort(order).to_list(1000)

    async def counts(self) -> list[Document]:
        """How many workflows there are by type and status."""
        types = await self._distinct("type")
        statuses = await self._distinct("status")
        pairs = [(kind, status) for kind in types for status in statuses]
        counted = [{"type": k, "status": s, "count": await self._count(k, s)} for k, s in pairs]
        return [one for one in counted if one["count"]]

    async def unfinished(self, older_s: float, limit: int) -> list[tuple[str, int]]:
        """(workflow_id, revision) of views that say running or failing and have not changed for a while."""
        old = {"$expr": {"$lt": ["$updated_at", self._clock.after(-older_s)]}}
        return await self._revisions({"status": {"$in": [Status.RUNNING, Status.FAILING]}, **old}, limit)

    async def waiting(self, after: str, limit: int) -> list[tuple[str, int]]:
        """(workflow_id, revision) of a page of views that say waiting, beyond `after`."""
        return await self._revisions({"status": Status.WAITING, "workflow_id": {"$gt": after}}, limit)

    async def _revisions(self, condition: Document, limit: int) -> list[tuple[str, int]]:
        fields = {"workflow_id": 1, "revision": 1}
        async with wrapped():
            found = (
                await self._snapshots.find(condition, fields).sort("workflow_id", ASCENDING).limit(limit).to_list(limit)
            )
        return [(one["workflow_id"], one["revision"]) for one in found]

    async def workers(self) -> list[Document]:
        """Workers that beat within the last hour, by name; `silent` are those that have missed several beats."""
        remembered = {"$expr": {"$gte": ["$beat_at", self._clock.after(-REMEMBERED_S)]}}
        silent = {"$lt": ["$beat_at", self._clock.after(-SILENT_S)]}
        shown = {**dict.fromkeys(("slots", "busy", "dropped", "observer_depth", "beat_at"), 1), "silent": silent}
        async with wrapped():
            return await self._workers.find(remembered, shown).sort("_id", ASCENDING).to_list(1000)

    async def _distinct(self, name: str) -> list[str]:
        async with wrapped():
            return await self._snapshots.distinct(name)

    async def _count(self, type: str, status: str) -> int:
        async with wrapped():
            return await self._snapshots.count_documents({"type": type, "status": status})


def attempt_id(instance: Instance, step: str, attempt: int) -> str:
    """The key of one attempt."""
    return f"{instance.biz_key}|{instance.run}|{step}|{attempt}"


def _attempt_update(key: str, instance: Instance, fields: Document, sums: Mapping[str, int]) -> UpdateOne:
    known: Document = {
        "biz_key": instance.biz_key,
        "workflow_id": instance.workflow_id,
        "run": instance.run,
        "revision": instance.revision,
    }
    changes: Document = {name: literal(value) for name, value in {**known, **fields}.items()}
    changes |= {name: {"$add": [{"$ifNull": [f"${name}", 0]}, amount]} for name, amount in sums.items()}
    newer = {"$lt": [{"$ifNull": ["$revision", -1]}, instance.revision]}
    pipeline = [{"$replaceWith": {"$cond": [newer, {"$mergeObjects": ["$$ROOT", changes]}, "$$ROOT"]}}]
    return UpdateOne({"_id": key}, pipeline, upsert=True)


def _snapshot_update(instance: Instance) -> UpdateOne:
    document = _snapshot(instance)
    newer = {"$lte": [{"$ifNull": ["$revision", -1]}, instance.revision]}
    pipeline = [{"$replaceWith": {"$cond": [newer, literal(document), "$$ROOT"]}}]
    return UpdateOne({"_id": instance.biz_key}, pipeline, upsert=True)


def _snapshot(instance: Instance) -> Document:
    document = plain(instance) or {}
    for name in ("_id", "output", "commit", "claim_token"):
        del document[name]
    derived = {"step": current_step(instance), "claimed": bool(instance.claim_token)}
    return {"_id": instance.biz_key, "workflow_id": instance.workflow_id, **derived, **document}


class _LastAttempt:
    """A step's final state as a change of its last attempt."""

    def __init__(self, step: str, attempt: int, fields: Document) -> None:
        self.step, self.attempt, self.set, self.add = step, attempt, fields, dict[str, int]()


def _last_attempt(instance: Instance, name: str) -> Any:
    step = instance.steps[name]
    status = step.status if step.status is not StepStatus.RUNNING else "abandoned"
    fields = {
        "status": str(status),
        "started_at": step.started_at,
        "finished_at": step.finished_at,
        "error": step.error,
    }
    return _LastAttempt(name, step.attempt, fields)
