"""How many summaries a person may start in 24 hours, in MongoDB: a document per person, a hold per object and round.

A hold that was given back stays behind as such, so that a late worker of that round cannot take it again.
"""

from datetime import datetime, timedelta

from pymongo import ReturnDocument

from activities.ports import QuotaExhausted
from kernel import Clock, StaleRound, boundary
from kernel.driver import Database
from kernel.writes import Document, literal, wrapped

WINDOW = timedelta(hours=24)


class DailyQuotaSpent(QuotaExhausted):
    """The person has started as many summaries as a day allows."""

    def __init__(self, per_day: int, retry_after_s: float) -> None:
        hours, minutes = retry_after_s / 3600, max(retry_after_s / 60, 1)
        when = f"in {hours:.0f} hours" if hours >= 1.5 else f"in {minutes:.0f} minutes"
        super().__init__(f"The {per_day} summaries that may be started in 24 hours are used up; try again {when}.")
        self.retry_after_s = retry_after_s


class QuotaRecords:
    """`quota`. `hold` names the object and the round that a place is held for."""

    def __init__(self, database: Database, clock: Clock, *, per_day: int) -> None:
        self._collection = database["quota"]
        self._clock = clock
        self._per_day = per_day

    async def ensure_indexes(self) -> None:
        """Everything is read by id: nothing to create."""

    @boundary
    async def take(self, user_id: str, hold: str) -> None:
        """Hold a place, once. Raises DailyQuotaSpent, or StaleRound where the place was given back before."""
        used = {"$size": {"$filter": {"input": "$holds", "cond": {"$not": "$$this.returned"}}}}
        closed = {"$or": [_among(hold), {"$gte": [used, literal(self._per_day)]}]}
        found = await self._update(user_id, {"$cond": [closed, "$holds", self._with(hold, returned=False)]})
        mine = next((one for one in found["holds"] if one["hold"] == hold), None)
        if mine is None:
            raise self._spent(found)
        if mine["returned"]:
            raise StaleRound(f"{hold} has ended and gave its quota back")

    @boundary
    async def give_back(self, user_id: str, hold: str) -> None:
        """Give a place back; one that was never held cannot be taken afterwards."""
        theirs = {"$cond": [_is(hold), {"$mergeObjects": ["$$this", {"returned": True}]}, "$$this"]}
        marked = {"$map": {"input": "$holds", "as": "this", "in": theirs}}
        await self._update(user_id, {"$cond": [_among(hold), marked, self._with(hold, returned=True)]})

    async def check(self, user_id: str) -> None:
        """Raises DailyQuotaSpent where no place is left now. A look only: `take` decides."""
        async with wrapped():
            found = await self._collection.find_one({"_id": user_id}, {"holds": self._recent(), "now": self._clock.now})
        if found and sum(not one["returned"] for one in found["holds"]) >= self._per_day:
            raise self._spent(found)

    async def _update(self, user_id: str, holds: Document) -> Document:
        """Replace the list in one atomic update, holds older than the window dropped first."""
        recent = {"$set": {"holds": self._recent(), "now": self._clock.now}}
        async with wrapped():
            return await self._collection.find_one_and_update(
                {"_id": user_id},
                [recent, {"$set": {"holds": holds}}],
                upsert=True,
                return_document=ReturnDocument.AFTER,
            )

    def _recent(self) -> Document:
        all_holds = {"$ifNull": ["$holds", []]}
        oldest = self._clock.after(-WINDOW.total_seconds())
        return {"$filter": {"input": all_holds, "cond": {"$gt": ["$$this.at", oldest]}}}

    def _with(self, hold: str, *, returned: bool) -> Document:
        entry = {"hold": literal(hold), "at": self._clock.now, "returned": literal(returned)}
        return {"$concatArrays": ["$holds", [entry]]}

    def _spent(self, found: Document) -> DailyQuotaSpent:
        """`found`: the person's recent holds, and the database's time."""
        first: datetime = min(one["at"] for one in found["holds"] if not one["returned"])
        return DailyQuotaSpent(self._per_day, max((first + WINDOW - found["now"]).total_seconds(), 1.0))


def _is(hold: str) -> Document:
    return {"$eq": ["$$this.hold", literal(hold)]}


def _among(hold: str) -> Document:
    return {"$in": [literal(hold), "$holds.hold"]}
