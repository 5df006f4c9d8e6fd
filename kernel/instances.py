"""Instances from outside a claim: creation, replay, claims, activation, supersede, and reads.

Each durable write is one conditional update of its own; a miss means that somebody else was first.
"""

from collections.abc import Collection as Some
from typing import Any

import msgspec
from pymongo import ASCENDING, ReturnDocument

from kernel.clock import Clock
from kernel.commits import Commits
from kernel.definition import Plan
from kernel.driver import Database
from kernel.faults import boundary
from kernel.model import (
    CLAIMABLE,
    DONE,
    FAR_FUTURE,
    NEXT,
    SETTLED,
    Instance,
    Resume,
    Status,
    StepStatus,
    Wait,
    workflow_id_of,
)
from kernel.writes import Document, changed, counted, due_now, literal, new_token, plain, wrapped

Served = list[tuple[str, str]]  # (type, definition fingerprint)
MAX_STRIKES = 5
COUNTERS = ("attempt", "failures", "elapsed_ms", "traffic_wait_ms", "traffic_waits", "waits")
FRESH_STEP = {"status": StepStatus.PENDING, **dict.fromkeys(COUNTERS, 0)}
"""A step as it is created and as a replay leaves it. Counters are written out: an update adds to what is there."""


class Instances:
    """`workflow_instances`, written by whoever holds no claim on them."""

    def __init__(self, database: Database, commits: Commits, clock: Clock) -> None:
        self._collection = database["workflow_instances"]
        self._commits = commits
        self._clock = clock

    async def ensure_indexes(self) -> None:
        """The index that claims and scans run on."""
        await self._collection.create_index([("status", ASCENDING), ("claimable_time", ASCENDING)])

    # ---- StartOrResume ----

    @boundary
    async def create(
        self, plan: Plan, biz_key: str, values: Document, round: int, priority: int
    ) -> tuple[Instance, bool]:
        """Create the instance, or leave the existing one as it is; second value: whether this call created it.

        The server runs the pipeline again on the winner's document in a race, so it must not change an existing one.
        """
        creation = new_token()
        document = _new_document(plan, biz_key, values, round, priority, creation)
        times = dict.fromkeys(("claimable_time", "created_at", "updated_at"), self._clock.now)
        missing = {"$eq": [{"$type": "$created_at"}, "missing"]}
        fresh = {"$mergeObjects": [literal(document), times]}
        pipeline: list[Document] = [{"$replaceWith": {"$cond": [missing, fresh, "$$ROOT"]}}]
        async with wrapped():
            found = await self._commits.apply({"_id": document["_id"]}, pipeline, upsert=True, creation=creation)
            created = found is not None
            found = found or await self._collection.find_one({"_id": document["_id"]})
        return _instance(found), created

    @boundary
    async def raise_priority(self, workflow_id: str, priority: int) -> bool:
        """Make an unfinished instance more urgent; never less."""
        async with wrapped():
            result = await self._collection.update_one(
                {"_id": workflow_id, "business_priority": {"$gt": priority}, "status": {"$in": [*_live()]}},
                {"$set": {"business_priority": priority}},
            )
        return result.modified_count == 1

    @boundary
    async def replay(
        self, found: Instance, values: Document, round: int, priority: int, again: Some[str] = ()
    ) -> Instance | None:
        """Start the next run of a failed instance for a newer round; None where another caller was first.

        What was completed or skipped stays so, but for the steps of `again`.
        """
        steps = {
            f"steps.{name}": literal(FRESH_STEP) if name in again else _keep_done(name) for name in found.step_order
        }
        changes = {
            **steps,
            "status": literal(Status.RUNNING),
            "round": literal(round),
            "input": literal(values),
            "business_priority": {"$min": ["$business_priority", priority]},
            "run": {"$add": ["$run", 1]},
            "retry_count": {"$add": ["$retry_count", 1]},
            "opening": literal(None),
            "finalizer_failures": literal(0),
            "strikes": literal(0),
            "claimable_time": self._clock.now,
            **_no_claim(),
            "finished_at": literal(None),
            "error": literal(None),
        }
        condition = {"status": Status.FAILED, "round": {"$lt": round}}
        return await self._change(found.workflow_id, condition, changes)

    # ---- claims ----

    @boundary
    async def claim(
        self, workflow_id: str, served: Served, token: str, worker: str, lease_s: float, openings: Some[str] = ()
    ) -> Instance | None:
        """Take the execution lease of a due instance; None where it is not to be had. Only this grants execution.

        The step that the instance opens with is started in the same update where `openings` has its `type/step`.
        """
        condition, pipeline = self._claiming(served, token, worker, lease_s, openings)
        async with wrapped():
            found = await self._commits.apply({"_id": workflow_id, **condition}, pipeline, claim_token=token)
        return _instance(found) if found else None

    @boundary
    async def claim_any(
        self, served: Served, token: str, worker: str, lease_s: float, openings: Some[str] = ()
    ) -> Instance | None:
        """Take the lease of any due instance, without the order of lanes: for when Redis is away."""
        condition, pipeline = self._claiming(served, token, worker, lease_s, openings)
        async with wrapped():
            found = await self._collection.find_one_and_update(
                condition, pipeline, return_document=ReturnDocument.AFTER
            )
        return _instance(found) if found and found["claim_token"] == token else None

    def _claiming(
        self, served: Served, token: str, worker: str, lease_s: float, openings: Some[str]
    ) -> tuple[Document, list[Document]]:
        condition = {
            "status": {"$in": [*CLAIMABLE]},
            "parked_at": None,
            **_served(served),
            **due_now(self._clock),
        }
        orphaned = {"$ne": ["$claim_token", ""]}
        strikes = {"$cond": [orphaned, {"$add": ["$strikes", 1]}, "$strikes"]}
        taken = {
            "claimable_since": "$claimable_time",
            "claimed_at": self._clock.now,
            "claimable_time": self._clock.after(lease_s),
            "claim_token": literal(token),
            "worker": literal(worker),
            "steps": self._opened(openings),
            "opening": literal(None),
            **counted(self._clock),
        }
        parked = {
            "parked_at": self._clock.now,
            "claimable_time": literal(FAR_FUTURE),
            "claim_token": literal(""),
            **counted(self._clock),
        }
        too_many = {"$gte": ["$strikes", MAX_STRIKES]}
        choice = {"$cond": [too_many, {"$mergeObjects": ["$$ROOT", parked]}, {"$mergeObjects": ["$$ROOT", taken]}]}
        return condition, [{"$set": {"strikes": strikes}}, {"$replaceWith": choice}]

    def _opened(self, openings: Some[str]) -> Document:
        """The steps, the opening one started if it is due and needs no permit."""
        now, step = self._clock.now, "$$step.v"
        known = {"$in": [{"$concat": ["$type", "/", {"$ifNull": ["$opening", ""]}]}, literal([*openings])]}
        startable = [
            {"$eq": ["$$step.k", "$opening"]},
            {"$eq": [f"{step}.status", StepStatus.PENDING]},
            {"$lte": [{"$ifNull": [f"{step}.due", now]}, now]},
        ]
        started = {
            "status": StepStatus.RUNNING,
            "attempt": {"$add": [f"{step}.attempt", 1]},
            "started_at": now,
            "due": literal(None),
        }
        value = {"$cond": [{"$and": startable}, {"$mergeObjects": [step, started]}, step]}
        each = {"input": {"$objectToArray": "$steps"}, "as": "step", "in": {"k": "$$step.k", "v": value}}
        opened = {"$arrayToObject": {"$map": each}}
        return {"$cond": [{"$and": [{"$eq": ["$status", Status.RUNNING]}, known]}, opened, "$steps"]}

    @boundary
    async def release_parked(self, workflow_id: str) -> bool:
        """Let a parked instance be claimed again."""
        changes = {
            "parked_at": literal(None),
            "strikes": literal(0),
            "finalizer_failures": literal(0),
            "claimable_time": self._clock.now,
        }
        return await self._change(workflow_id, {"parked_at": {"$ne": None}}, changes) is not None

    # ---- activation and supersede ----

    @boundary
    async def activate(self, workflow_id: str, step: str, wait: Wait, resume: Resume, *, due: bool) -> Instance | None:
        """Wake a waiting step while nobody holds the claim. The whole wait must still be the same.

        `due=True` additionally needs the step's own time to have come.
        """
        condition: Document = {
            "status": {"$in": [Status.WAITING, Status.RUNNING]},
            "claim_token": "",
            f"steps.{step}.status": StepStatus.WAITING,
            f"steps.{step}.wait": plain(wait),
        }
        if due:
            condition["$expr"] = {"$lte": [f"$steps.{step}.due", self._clock.now]}
        changes = {
            **woken(step, resume),
            "opening": literal(step),
            "status": literal(Status.RUNNING),
            "claimable_time": self._clock.now,
        }
        return await self._change(workflow_id, condition, changes)

    @boundary
    async def supersede(self, found: Instance) -> Instance | None:
        """Cancel an instance that has not ended, without a token; None where it has."""
        sources = [status for status, following in NEXT.items() if Status.CANCELED in following]
        changes = {
            **{f"steps.{name}": _skip_unsettled(name) for name in found.step_order},
            "status": literal(Status.CANCELED),
            "claimable_time": literal(FAR_FUTURE),
            **_no_claim(),
            "finished_at": self._clock.now,
        }
        return await self._change(found.workflow_id, {"status": {"$in": sources}}, changes)

    # ---- reads ----

    async def get(self, workflow_id: str) -> Instance | None:
        """The instance, by a majority read."""
        async with wrapped():
            found = await self._collection.find_one({"_id": workflow_id})
        return _instance(found) if found else None

    async def several(self, workflow_ids: list[str]) -> list[Instance]:
        """These instances, as far as they exist."""
        async with wrapped():
            found = await self._collection.find({"_id": {"$in": workflow_ids}}).to_list(len(workflow_ids) or 1)
        return [_instance(one) for one in found]

    async def due(self, served: Served, limit: int) -> list[Instance]:
        """Instances that could be claimed now."""
        return await self._find({"status": {"$in": [*CLAIMABLE]}, "parked_at": None, **_served(served)}, limit)

    async def due_waits(self, limit: int) -> list[Instance]:
        """Waiting instances whose time has come."""
        return await self._find({"status": Status.WAITING}, limit)

    async def waiting_for_signals(self, after: str, limit: int) -> list[Instance]:
        """A page of waiting instances by id, beyond `after`."""
        async with wrapped():
            cursor = self._collection.find({"status": Status.WAITING, "_id": {"$gt": after}}).sort("_id").limit(limit)
            return [_instance(found) for found in await cursor.to_list(limit)]

    async def _find(self, condition: Document, limit: int) -> list[Instance]:
        async with wrapped():
            cursor = self._collection.find({**condition, **due_now(self._clock)}).limit(limit)
            return [_instance(found) for found in await cursor.to_list(limit)]

    async def _change(self, workflow_id: str, condition: Document, changes: Document) -> Instance | None:
        commit = new_token()
        pipeline = [{"$set": {**changes, **changed(self._clock, commit)}}]
        async with wrapped():
            found = await self._commits.apply({"_id": workflow_id, **condition}, pipeline, commit=commit)
        return _instance(found) if found else None


def woken(step: str, resume: Resume) -> Document:
    """Changes that turn a waiting step into a pending one, saying why."""
    return {
        f"steps.{step}.status": literal(StepStatus.PENDING),
        f"steps.{step}.wait": literal(None),
        f"steps.{step}.due": literal(None),
        f"steps.{step}.resume": literal(plain(resume)),
    }


def _new_document(plan: Plan, biz_key: str, values: Document, round: int, priority: int, creation: str) -> Document:
    return {
        "_id": workflow_id_of(biz_key),
        "biz_key": biz_key,
        "type": plan.type,
        "definition_fingerprint": plan.fingerprint,
        "status": Status.RUNNING,
        "round": round,
        "business_priority": priority,
        "input": values,
        "step_order": list(plan.steps),
        "steps": {name: dict(FRESH_STEP) for name in plan.steps},
        "output": {},
        "opening": plan.opening,
        "claim_token": "",
        "strikes": 0,
        "parked_at": None,
        "run": 1,
        "retry_count": 0,
        "finalizer_failures": 0,
        "revision": 1,
        "creation": creation,
        "commit": creation,
        "worker": "",
        "finished_at": None,
        "error": None,
    }


def _instance(found: Any) -> Instance:
    return msgspec.convert(found, Instance)


def _live() -> list[Status]:
    return [status for status in NEXT if Status.CANCELED in NEXT[status]]


def _served(served: Served) -> Document:
    return {"$or": [{"type": kind, "definition_fingerprint": fingerprint} for kind, fingerprint in served]}


def _no_claim() -> Document:
    return {"claim_token": literal(""), "worker": literal(""), "parked_at": literal(None)}


def _keep_done(name: str) -> Document:
    done = {"$in": [f"$steps.{name}.status", [*DONE]]}
    return {"$cond": [done, f"$steps.{name}", literal(FRESH_STEP)]}


def _skip_unsettled(name: str) -> Document:
    settled = {"$in": [f"$steps.{name}.status", [*SETTLED]]}
    skipped = literal({"status": StepStatus.SKIPPED, "wait": None, "resume": None, "due": None})
    return {"$cond": [settled, f"$steps.{name}", {"$mergeObjects": [f"$steps.{name}", skipped]}]}
