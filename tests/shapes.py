"""Small workflows of every shape, each with a business object whose effects are counted.

The business side is real: a document per object in MongoDB, written by compare-and-set on round and state.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec
from pymongo.errors import DuplicateKeyError

from kernel import (
    Backoff,
    Definition,
    Fatal,
    Parts,
    Signal,
    Sleep,
    StaleRound,
    Step,
    StepContext,
    WaitForSignal,
    WorkflowCanceled,
    WorkflowContext,
    Yield,
    boundary,
    workflow_id_of,
)

AT_ONCE = Backoff(first_s=0.0)
LATER = Backoff(first_s=30.0, factor=1.0, jitter=0.0)


class ObjectInput(msgspec.Struct, frozen=True):
    """Input of every shape."""

    object_id: str
    fencing_token: int


@dataclass
class Business:
    """The objects that the shapes work on, and a ledger of external effects with their idempotency keys."""

    db: Any
    entered: list[str] = field(default_factory=list)
    objects: Any = None

    def __post_init__(self) -> None:
        self.objects = self.db["objects"]

    async def open(self, object_id: str, round: int = 1) -> ObjectInput:
        fresh = {"round": round, "state": "working"}
        await self.db["objects"].update_one({"_id": object_id}, {"$setOnInsert": fresh}, upsert=True)
        await self.db["objects"].update_one({"_id": object_id, "round": {"$lt": round}}, {"$set": fresh})
        return ObjectInput(object_id, round)

    async def get(self, object_id: str) -> dict[str, Any]:
        return await self.db["objects"].find_one({"_id": object_id})

    async def effect(self, key: str) -> None:
        """An effect outside that its owner counts once per key."""
        try:
            await self.db["effects"].insert_one({"_id": key})
        except DuplicateKeyError:
            return

    async def effects(self) -> list[str]:
        found = await self.db["effects"].find({}).sort("_id", 1).to_list(1000)
        return [one["_id"] for one in found]

    @boundary
    async def settle(self, context: WorkflowContext, state: str) -> None:
        given = context.load_input(ObjectInput)
        mine = {"_id": given.object_id, "round": given.fencing_token, "state": {"$in": ["working", state]}}
        result = await self.objects.update_one(mine, {"$set": {"state": state}})
        if result.matched_count == 0:
            raise StaleRound

    async def complete(self, context: WorkflowContext) -> None:
        await self.settle(context, "completed")

    async def complete_at_last(self, context: WorkflowContext) -> None:
        """A finalizer that raises the first time."""
        if await self.first_time(f"{context.biz_key}/finalizer"):
            raise RuntimeError("the other side is not ready")
        await self.complete(context)

    async def first_time(self, key: str) -> bool:
        """Whether nobody has asked this before."""
        try:
            await self.db["questions"].insert_one({"_id": key})
        except DuplicateKeyError:
            return False
        return True

    async def fail(self, context: WorkflowContext) -> None:
        await self.settle(context, "failed")

    def note(self, context: StepContext) -> str:
        self.entered.append(context.step)
        return f"{context.biz_key}/{context.round}/{context.step}"


def definitions(business: Business, parts: Parts) -> list[Definition]:
    """One definition of every shape."""

    async def work(context: StepContext) -> dict[str, Any]:
        await business.effect(business.note(context))
        return {"by": context.step}

    async def flaky(context: StepContext) -> dict[str, Any]:
        key = business.note(context)
        if context.attempt < 3:
            raise RuntimeError("not yet")
        await business.effect(key)
        return {}

    async def broken(context: StepContext) -> None:
        business.note(context)
        raise Fatal("it cannot be done")

    async def once_broken(context: StepContext) -> dict[str, Any]:
        key = business.note(context)
        if context.round == 1:
            raise Fatal("not in this round")
        await business.effect(key)
        return {}

    async def patient(context: StepContext) -> WaitForSignal:
        business.note(context)
        if context.round == 1:
            raise Fatal("not in this round")
        return WaitForSignal("ready", context.biz_key, context.round)

    async def canceled(context: StepContext) -> None:
        business.note(context)
        raise WorkflowCanceled("the object was removed")

    async def polled(context: StepContext) -> Sleep | dict[str, Any]:
        key = business.note(context)
        polls = (context.checkpoint or {}).get("polls", 0)
        await business.effect(f"{key}/task")
        return Sleep(60.0, {"polls": polls + 1}) if polls < 3 else {"polls": polls}

    async def waiting(context: StepContext) -> WaitForSignal | dict[str, Any]:
        business.note(context)
        given = context.load_input(ObjectInput)
        if (await business.get(given.object_id)).get("ready"):
            return {"woken_by": context.resume.kind if context.resume else None}
        return WaitForSignal("ready", given.object_id, given.fencing_token, poll_fallback_s=900.0)

    async def paging(context: StepContext) -> Yield | dict[str, Any]:
        key = business.note(context)
        page = (context.checkpoint or {}).get("page", 0)
        await business.effect(f"{key}/{page}")
        return Yield({"page": page + 1}) if page < 3 else {"pages": page + 1}

    async def ringing(context: StepContext) -> dict[str, Any]:
        """Makes the fact true and rings for the `signal` shape's object of the same name."""
        key = business.note(context)
        object_id = context.load_input(ObjectInput).object_id.removeprefix("bell-")
        await business.db["objects"].update_one({"_id": object_id}, {"$set": {"ready": True}})
        target = workflow_id_of(f"signal:{object_id}")
        await parts.publisher.deliver_signal(
            Signal(
                signal_id=f"{key}->{object_id}",
                workflow_id=target,
                signal_type="ready",
                wait_key=object_id,
                generation=1,
            )
        )
        return {}

    ends = {"success_finalizer": business.complete, "failure_finalizer": business.fail}
    return [
        Definition("linear", (Step("one", work), Step("two", work), Step("three", work), Step("four", work)), **ends),
        Definition("retry", (Step("one", flaky, max_retry=2, backoff=AT_ONCE), Step("two", work)), **ends),
        Definition("failing", (Step("one", work), Step("two", broken, max_retry=3)), **ends),
        Definition("replay", (Step("one", work), Step("two", once_broken), Step("three", work)), **ends),
        Definition("patient", (Step("one", patient),), **ends),
        Definition("cancel", (Step("one", work), Step("two", canceled)), **ends),
        Definition("skip", (Step("one", broken, on_failed="skip"), Step("two", work)), **ends),
        Definition("sleep", (Step("one", polled), Step("two", work)), **ends),
        Definition("signal", (Step("one", waiting), Step("two", work)), **ends),
        Definition("bell", (Step("one", ringing),), **ends),
        Definition("yield", (Step("one", paging), Step("two", work)), **ends),
        Definition(
            "wave",
            (
                Step("left", work, depends_on=()),
                Step("right", polled, depends_on=()),
                Step("below", flaky, max_retry=2, backoff=LATER, depends_on=()),
                Step("join", work, depends_on=("left", "right", "below")),
            ),
            **ends,
        ),
        Definition("stumbling", (Step("one", work),), success_finalizer=business.complete_at_last),
        Definition("bare", (Step("one", work), Step("two", work))),  # nothing is to be done after its last step
        Definition("permit", (Step("one", work, resource="narrow"), Step("two", work)), **ends),
    ]


def ready_signal(object_id: str, signal_id: str, generation: int = 1) -> Signal:
    return Signal(
        signal_id=signal_id,
        workflow_id=workflow_id_of(f"signal:{object_id}"),
        signal_type="ready",
        wait_key=object_id,
        generation=generation,
    )
