"""The business side of the run: objects with a round and a state, and an owner for each effect that counts it.

Written as the rules for activities ask: results by compare-and-set on round and state, effects under a key of object,
step and round. Each durable write is a boundary, so that processes die around these, too.
"""

from datetime import datetime
from typing import Any

import msgspec
from pymongo import ReturnDocument

from kernel import Clock, StaleRound, StepContext, WorkflowCanceled, WorkflowContext, boundary
from kernel.driver import Database
from kernel.intents import intent
from kernel.writes import Document, literal, plain, wrapped
from tests.chaos.requests import Request

COUNTED_ONCE = {"$inc": {"times": 1}}


class ObjectInput(msgspec.Struct, frozen=True):
    """Input of every shape."""

    object_id: str
    tenant: str
    fencing_token: int


class Ledger:
    """`objects`, `entries`, `effects`, `tasks`, `holds`, and `breaches` that an activity sees with its own eyes."""

    def __init__(self, database: Database, clock: Clock, name: str) -> None:
        self._db = database
        self._clock = clock
        self._name = name

    async def ensure_indexes(self) -> None:
        """What the callers' queries run on."""
        await self._db["objects"].create_index([("state", 1)])

    # ---- the callers' writes ----

    @boundary
    async def accept(self, request: Request) -> None:
        """The one write that accepts a request: the object and its pending intent. Repeating it changes nothing."""
        values = ObjectInput(request.object_id, request.tenant, 1)
        fields = msgspec.structs.asdict(request)
        new = {
            "_id": "$_id",
            **{name: literal(value) for name, value in fields.items()},
            **{f"{name}_at": self._after(fields[f"{name}_after_s"]) for name in ("remove", "ready", "ring")},
            **{"state": literal("working"), "round": literal(1), "created_at": self._clock.now},
            "workflow_dispatch": intent(request.shape, 1, values, self._clock),
        }
        fresh = {"$cond": [{"$eq": [{"$type": "$created_at"}, "missing"]}, new, "$$ROOT"]}
        async with wrapped():
            await self._db["objects"].update_one({"_id": request.object_id}, [{"$replaceWith": fresh}], upsert=True)

    @boundary
    async def begin_round(self, found: Document) -> bool:
        """A person tries again: state, round and the whole intent in one update."""
        round = found["round"] + 1
        values = ObjectInput(found["_id"], found["tenant"], round)
        fields = {"state": literal("working"), "round": literal(round)}
        fields["workflow_dispatch"] = intent(found["shape"], round, values, self._clock)
        return await self._change({"_id": found["_id"], "state": "failed", "round": round - 1}, fields) is not None

    @boundary
    async def remove(self, object_id: str) -> bool:
        """The owner removes an object that is being worked on: object and intent are canceled in one update."""
        fields = {"state": literal("canceled"), "cleared": literal(False)}
        fields["workflow_dispatch.status"] = literal("canceled")
        return await self._change({"_id": object_id, "state": "working"}, fields) is not None

    @boundary
    async def mark(self, object_id: str, **fields: Any) -> None:
        """Note what a caller has done."""
        async with wrapped():
            await self._db["objects"].update_one({"_id": object_id}, {"$set": fields})

    async def find(self, condition: Document, limit: int, *, due: str | None = None) -> list[Document]:
        """Some objects; with `due`, those whose time in that field has come."""
        if due is not None:
            condition = {**condition, due: {"$ne": None}, "$expr": {"$lte": [f"${due}", self._clock.now]}}
        async with wrapped():
            return await self._db["objects"].find(condition).limit(limit).to_list(limit)

    async def count(self, collection: str, condition: Document) -> int:
        """How many there are."""
        async with wrapped():
            return await self._db[collection].count_documents(condition)

    async def parked(self, limit: int) -> list[str]:
        """Ids of workflows that wait for an operator."""
        async with wrapped():
            found = await self._db["workflow_instances"].find({"parked_at": {"$ne": None}}, {"_id": 1}).to_list(limit)
        return [one["_id"] for one in found]

    # ---- the activities' reads and writes ----

    async def enter(self, context: StepContext) -> Document:
        """Note the entry into business code, then read the object first, as every activity does."""
        await self._note_entry(context)
        given = context.load_input(ObjectInput)
        async with wrapped():
            found = await self._db["objects"].find_one({"_id": given.object_id})
        if found is None:
            await self.breach(f"{given.object_id} runs and was never accepted")
            raise WorkflowCanceled
        if found["state"] == "canceled":
            raise WorkflowCanceled("the object was removed")
        if (found["round"], found["state"]) != (given.fencing_token, "working"):
            raise StaleRound
        return found

    @boundary
    async def _note_entry(self, context: StepContext) -> None:
        entry = {
            "workflow_id": context.workflow_id,
            "biz_key": context.biz_key,
            "run": context.run,
            "step": context.step,
            "attempt": context.attempt,
            "by": self._name,
        }
        async with wrapped():
            await self._db["entries"].insert_one(entry)

    @boundary
    async def effect(self, context: StepContext, part: str = "") -> str:
        """An effect outside, under its key; its owner counts how often it was asked for. Returns the short key."""
        short = f"{context.step}{part}@{context.round}"
        object_id = context.load_input(ObjectInput).object_id
        async with wrapped():
            await self._db["effects"].update_one(
                {"_id": f"{object_id}/{short}"}, {**COUNTED_ONCE, "$set": {"object_id": object_id}}, upsert=True
            )
        return short

    @boundary
    async def submit(self, context: StepContext, takes_s: float) -> str:
        """Hand a task to an outside service that knows its idempotency key; returns the task's id."""
        object_id = context.load_input(ObjectInput).object_id
        key = f"{object_id}/{context.step}@{context.round}"
        ready_at = {"$ifNull": ["$ready_at", self._clock.after(takes_s)]}
        submissions = {"$add": [{"$ifNull": ["$submissions", 0]}, 1]}
        fields = {"object_id": literal(object_id), "ready_at": ready_at, "submissions": submissions}
        async with wrapped():
            await self._db["tasks"].update_one({"_id": key}, [{"$set": fields}], upsert=True)
        return key

    async def finished(self, task: str, now: datetime) -> bool:
        """Ask the outside service."""
        async with wrapped():
            found = await self._db["tasks"].find_one({"_id": task})
        return found is not None and found["ready_at"] <= now

    @boundary
    async def take_hold(self, context: WorkflowContext) -> None:
        """Hold a place of the tenant's quota, once a round. Raises StaleRound where it was given back before."""
        given = context.load_input(ObjectInput)
        if await self._hold(given.object_id, given.fencing_token, "taken") == "returned":
            raise StaleRound

    @boundary
    async def return_hold(self, object_id: str, round: int) -> None:
        """Give the place back. What was never held cannot be taken afterwards."""
        await self._hold(object_id, round, "returned")

    async def _hold(self, object_id: str, round: int, state: str) -> str:
        after = {"$cond": [{"$eq": ["$state", "returned"]}, "$state", literal(state)]}
        async with wrapped():
            found = await self._db["holds"].find_one_and_update(
                {"_id": f"{object_id}:{round}"},
                [{"$set": {"state": after}}],
                upsert=True,
                return_document=ReturnDocument.AFTER,
            )
        return found["state"]

    @boundary
    async def settle(self, context: WorkflowContext, state: str) -> None:
        """Write the result, if the object still serves this round and has not ended otherwise. Raises StaleRound."""
        given = context.load_input(ObjectInput)
        outputs = {step: (output or {}).get("did") for step, output in context.outputs.items()}
        mine = {"_id": given.object_id, "round": given.fencing_token, "state": {"$in": ["working", state]}}
        if await self._change(mine, {"state": literal(state), "outputs": literal(plain(outputs))}) is None:
            raise StaleRound

    async def breach(self, what: str) -> None:
        """Report what must never be seen."""
        async with wrapped():
            await self._db["breaches"].insert_one({"what": what, "by": self._name})

    def _after(self, seconds: float | None) -> Any:
        return literal(None) if seconds is None else self._clock.after(seconds)

    async def _change(self, condition: Document, fields: Document) -> Document | None:
        async with wrapped():
            return await self._db["objects"].find_one_and_update(
                condition, [{"$set": fields}], return_document=ReturnDocument.AFTER
            )
