"""Writes of the dispatch intent embedded in a business document: confirm, lease, renew, give back.

The field is `workflow_dispatch`. Each write is conditional on the object's round and, for a recovery, on the
dispatch token of whoever registers the workflow now.
"""

from datetime import datetime
from typing import Any

import msgspec
from pymongo import ASCENDING, ReturnDocument

from kernel.clock import Clock
from kernel.driver import Collection
from kernel.faults import boundary
from kernel.writes import Document, literal, plain, wrapped

FIRST_DUE_S = 15.0


class DispatchIntent(msgspec.Struct, kw_only=True):
    """`workflow_dispatch`: which workflow, which round, with which input, and whether it is registered."""

    type: str
    status: str  # pending | processing | dispatched
    fencing_token: int
    input: dict[str, Any] | None = None
    from_step: str | None = None
    claim_token: str = ""
    lease_until: datetime | None = None
    next_attempt_at: datetime | None = None
    attempts: int = 0
    error: str | None = None


def intent(type: str, round: int, input: msgspec.Struct, clock: Clock, *, from_step: str | None = None) -> Document:
    """The pending intent as an aggregation expression, to be embedded in the business object's own write.

    `from_step`: where the replay of a failed workflow begins, if earlier than at what had not been done.
    """
    values = {
        "type": type,
        "status": "pending",
        "fencing_token": round,
        "input": plain(input),
        "from_step": from_step,
        "claim_token": "",
        "lease_until": None,
        "attempts": 0,
        "error": None,
    }
    return {"$mergeObjects": [literal(values), {"next_attempt_at": clock.after(FIRST_DUE_S)}]}


class Intents:
    """The intents of one business collection."""

    def __init__(self, collection: Collection, clock: Clock) -> None:
        self._collection = collection
        self._clock = clock

    async def ensure_indexes(self) -> None:
        """The index that the recovery scan runs on."""
        await self._collection.create_index(
            [("workflow_dispatch.status", ASCENDING), ("workflow_dispatch.next_attempt_at", ASCENDING)]
        )

    async def get(self, object_id: str) -> DispatchIntent | None:
        """The intent of an object, by a majority read."""
        async with wrapped():
            found = await self._collection.find_one({"_id": object_id}, {"workflow_dispatch": 1})
        return _intent(found)

    @boundary
    async def confirm(self, object_id: str, round: int) -> bool:
        """The request path: pending → dispatched for this round."""
        return await self._change(object_id, round, {"status": "pending"}, self._dispatched()) is not None

    @boundary
    async def confirm_leased(self, object_id: str, round: int, token: str) -> bool:
        """The recovery path: processing under our token → dispatched."""
        return await self._change(object_id, round, _leased(token), self._dispatched()) is not None

    @boundary
    async def lease(self, object_id: str, token: str, lease_s: float) -> DispatchIntent | None:
        """Take the dispatch lease of a due intent: pending, or processing whose lease ran out."""
        due = _passed("next_attempt_at", self._clock)
        expired = _passed("lease_until", self._clock)
        condition = {"_id": object_id, "$or": [_status("pending", due), _status("processing", expired)]}
        changes = {
            "status": literal("processing"),
            "claim_token": literal(token),
            "lease_until": self._clock.after(lease_s),
            "attempts": {"$add": ["$workflow_dispatch.attempts", 1]},
        }
        return await self._update(condition, changes)

    @boundary
    async def renew(self, object_id: str, round: int, token: str, lease_s: float) -> bool:
        """Extend the dispatch lease."""
        changes = {"lease_until": self._clock.after(lease_s)}
        return await self._change(object_id, round, _leased(token), changes) is not None

    @boundary
    async def give_back(self, object_id: str, round: int, token: str, delay_s: float, error: str) -> bool:
        """A transient failure: processing → pending, the same round and input, later."""
        changes = {
            "status": literal("pending"),
            "claim_token": literal(""),
            "lease_until": literal(None),
            "next_attempt_at": self._clock.after(delay_s),
            "error": literal(error),
        }
        return await self._change(object_id, round, _leased(token), changes) is not None

    async def due(self, limit: int) -> list[str]:
        """Ids of objects whose intent could be leased now."""
        pending = _status("pending", _passed("next_attempt_at", self._clock))
        expired = _status("processing", _passed("lease_until", self._clock))
        async with wrapped():
            found = await self._collection.find({"$or": [pending, expired]}, {"_id": 1}).limit(limit).to_list(limit)
        return [one["_id"] for one in found]

    def _dispatched(self) -> Document:
        cleared = {"claim_token": literal(""), "lease_until": literal(None), "error": literal(None)}
        return {"status": literal("dispatched"), **cleared}

    async def _change(
        self, object_id: str, round: int, condition: Document, changes: Document
    ) -> DispatchIntent | None:
        held = {f"workflow_dispatch.{name}": value for name, value in condition.items()}
        return await self._update({"_id": object_id, "workflow_dispatch.fencing_token": round, **held}, changes)

    async def _update(self, condition: Document, changes: Document) -> DispatchIntent | None:
        update = {f"workflow_dispatch.{name}": value for name, value in changes.items()}
        async with wrapped():
            found = await self._collection.find_one_and_update(
                condition,
                [{"$set": update}],
                projection={"workflow_dispatch": 1},
                return_document=ReturnDocument.AFTER,
            )
        return _intent(found)


def _intent(found: Document | None) -> DispatchIntent | None:
    return msgspec.convert(found["workflow_dispatch"], DispatchIntent) if found else None


def _leased(token: str) -> Document:
    return {"status": "processing", "claim_token": token}


def _status(status: str, condition: Document) -> Document:
    return {"workflow_dispatch.status": status, **condition}


def _passed(name: str, clock: Clock) -> Document:
    return {"$expr": {"$lte": [f"$workflow_dispatch.{name}", clock.now]}}
