"""How a summary is removed, in MongoDB: hidden at once, carried out when it can no longer be undone, then settled.

Until it is carried out nothing is interrupted, so that an undo needs to repair nothing. Carrying it out cancels object
and dispatch intent in one update; the record stays unsettled until workflow and quota have followed.
"""

from activities.adapters.objects import Objects, literals, loaded
from activities.adapters.summaries import ORDER
from activities.records import SummaryRecord
from kernel import Clock, boundary
from kernel.driver import Database
from kernel.writes import Document, literal, wrapped

UNDO_S = 10.0


class Removals:
    """The end of `summaries` that their owners, or an operator, do not want any more."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._collection = database["summaries"]
        self._objects = Objects(self._collection, clock)
        self._clock = clock

    async def ensure_indexes(self) -> None:
        """Indexes of what is on its way out."""
        await self._collection.create_index("removed_at", sparse=True)
        await self._collection.create_index("unsettled", sparse=True)

    @boundary
    async def hide(self, user_id: str, summary_id: str) -> bool:
        """Remove a person's own summary, for the time being; False where it is not there."""
        condition = {"_id": summary_id, "user_id": user_id, "removed_at": None}
        return await self._objects.update(condition, [{"$set": {"removed_at": self._clock.now}}]) is not None

    @boundary
    async def undo(self, user_id: str, summary_id: str) -> SummaryRecord | None:
        """Bring a summary back whose removal has not been carried out."""
        condition = {"_id": summary_id, "user_id": user_id, "removed_at": {"$ne": None}, "purged_at": None}
        found = await self._objects.update(condition, [{"$set": {"removed_at": literal(None)}}])
        return loaded(found, "summary_id", SummaryRecord) if found else None

    async def knows(self, user_id: str, summary_id: str) -> bool:
        """Whether this is, or was until its removal, a summary of that person."""
        async with wrapped():
            return await self._collection.find_one({"_id": summary_id, "user_id": user_id}, {"_id": 1}) is not None

    async def due(self, limit: int) -> list[str]:
        """Ids of summaries whose removal can no longer be undone and has not been carried out."""
        async with wrapped():
            found = await self._collection.find(self._due(), {"_id": 1}).limit(limit).to_list(limit)
        return [one["_id"] for one in found]

    @boundary
    async def carry_out(self, summary_id: str) -> None:
        """Cancel object and intent and forget the text, in one update; nothing where it was undone."""
        forgotten = literals({"text": "", "chapters": [], "notes": {}})
        changes = {**self._canceled("The summary was removed."), **forgotten, "purged_at": self._clock.now}
        await self._objects.update({"_id": summary_id, **self._due()}, [{"$set": changes}])

    @boundary
    async def cancel(self, summary_id: str, reason: str) -> bool:
        """Cancel an unfinished summary and its intent in one update; False where it has ended."""
        condition = {"_id": summary_id, "state": {"$in": ORDER}}
        return await self._objects.update(condition, [{"$set": self._canceled(reason)}]) is not None

    async def unsettled(self, limit: int) -> list[SummaryRecord]:
        """Summaries that were canceled here, but whose workflow or quota may not know it yet."""
        async with wrapped():
            found = await self._collection.find({"unsettled": True}).limit(limit).to_list(limit)
        return [loaded(one, "summary_id", SummaryRecord) for one in found]

    @boundary
    async def settle(self, summary_id: str) -> None:
        """Everything that follows has been done."""
        await self._objects.update({"_id": summary_id}, [{"$unset": "unsettled"}])

    def _due(self) -> Document:
        past = {"$lte": ["$removed_at", self._clock.after(-UNDO_S)]}
        return {"removed_at": {"$ne": None}, "purged_at": None, "$expr": past}

    def _canceled(self, reason: str) -> Document:
        """What an object that has not ended becomes; one that has keeps its state."""
        open_still = {"$in": ["$state", literal(ORDER)]}
        ended = {"state": literal("canceled"), "error": literal(reason), "finished_at": self._clock.now}
        fields = {name: {"$cond": [open_still, value, f"${name}"]} for name, value in ended.items()}
        marks = {"workflow_dispatch.status": literal("canceled"), "unsettled": literal(True)}
        return {**fields, **marks, "updated_at": self._clock.now}
