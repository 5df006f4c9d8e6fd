"""Summaries in MongoDB: a person's subscriptions to sessions, their results and their embedded dispatch intents.

The id follows from person, session, style, language and incarnation, so that asking twice for the same thing gives one
summary; after a removal the next incarnation is another one. A removal can be undone until it is carried out.
"""

from typing import Any

import msgspec

from activities.adapters.objects import Objects, derived_id, first_time, forward, literals, loaded
from activities.adapters.quota import QuotaRecords
from activities.payloads import Composed, Language, Notes, Style, Summary, SummaryInput, SummaryState
from activities.plans import SUMMARY, TRANSCRIPT_FAILED, TRANSCRIPT_READY
from activities.records import SummaryRecord
from kernel import Clock, StaleRound, boundary
from kernel.driver import Database
from kernel.intents import intent
from kernel.writes import Document, literal, wrapped

INITIAL = "waiting_for_stream"
ORDER = [INITIAL, "transcribing", "writing"]
WAITING = (INITIAL, "transcribing")
WHOLE = {"notes": 0}
"""All of a summary but the notes that it was written from, which only its writing reads."""


class SummaryRecords:
    """`summaries`."""

    def __init__(self, database: Database, clock: Clock, quota: QuotaRecords) -> None:
        self._collection = database["summaries"]
        self._transcripts = database["transcripts"]
        self._objects = Objects(self._collection, clock)
        self._clock = clock
        self._quota = quota

    async def ensure_indexes(self) -> None:
        """Indexes of a person's list, of one's subscriptions, and of a session's subscribers."""
        await self._collection.create_index([("user_id", 1), ("created_at", -1), ("_id", -1)])
        await self._collection.create_index([("subscription", 1), ("incarnation", -1)])
        await self._collection.create_index([("session_id", 1), ("_id", 1)])

    # ---- subscribing ----

    async def latest(self, user_id: str, session_id: str, style: Style, language: Language) -> SummaryRecord | None:
        """The newest incarnation of this subscription, removed or not."""
        key = derived_id("sub", user_id, session_id, style, language)
        async with wrapped():
            found = await self._collection.find({"subscription": key}).sort("incarnation", -1).limit(1).to_list(1)
        return _summary(found[0]) if found else None

    @boundary
    async def create(
        self, user_id: str, session_id: str, style: Style, language: Language, incarnation: int = 0
    ) -> tuple[SummaryRecord, bool]:
        """The summary with its pending intent, in one insert; and whether this call made it."""
        summary_id = derived_id("sum", user_id, session_id, style, language, incarnation)
        input = SummaryInput(summary_id, user_id, session_id, style, language, 1)
        fields = {
            "user_id": user_id,
            "session_id": session_id,
            "style": style,
            "language": language,
            "subscription": derived_id("sub", user_id, session_id, style, language),
            "incarnation": incarnation,
            "round": 1,
            "state": INITIAL,
        }
        pending = {"workflow_dispatch": intent(SUMMARY.type, 1, input, self._clock)}
        found, created = await self._objects.create(summary_id, literals(fields) | pending)
        return _summary(found), created

    @boundary
    async def retry(self, summary_id: str, round: int, from_step: str | None = None) -> SummaryRecord:
        """A failed summary begins its next round: state, whole intent and error in one update. Raises StaleRound."""
        found = await self.get(summary_id)
        if found is None:
            raise StaleRound(f"there is no summary {summary_id}")
        following = round + 1
        input = SummaryInput(summary_id, found.user_id, found.session_id, found.style, found.language, following)
        fields = literals({"state": INITIAL, "round": following, "error": None, "finished_at": None})
        fields["workflow_dispatch"] = intent(SUMMARY.type, following, input, self._clock, from_step=from_step)
        return _summary(await self._objects.change(summary_id, round, ["failed"], fields))

    # ---- a person's own ----

    async def own(self, user_id: str, summary_id: str) -> SummaryRecord | None:
        """The summary, if it is this person's and not removed."""
        found = await self.get(summary_id)
        return found if found and found.user_id == user_id and found.removed_at is None else None

    async def count_waiting(self, user_id: str) -> int:
        """How many of a person's summaries wait for their stream."""
        condition = {"user_id": user_id, "state": INITIAL, "removed_at": None}
        async with wrapped():
            return await self._collection.count_documents(condition)

    async def page(self, user_id: str, limit: int, before: str | None = None) -> list[SummaryRecord]:
        """A person's summaries, newest first; `before` is the id of the last one of the page before."""
        condition: Document = {"user_id": user_id, "removed_at": None}
        last = await self.get(before) if before else None
        if last and last.user_id == user_id:
            same_time = {"created_at": last.created_at, "_id": {"$lt": last.summary_id}}
            condition["$or"] = [{"created_at": {"$lt": last.created_at}}, same_time]
        order = [("created_at", -1), ("_id", -1)]
        async with wrapped():
            found = await self._collection.find(condition, WHOLE).sort(order).limit(limit).to_list(limit)
        return [_summary(one) for one in found]

    # ---- the port Summaries ----

    async def get(self, summary_id: str) -> SummaryRecord | None:
        """The summary, or None. A removed one stays until its removal has been carried out."""
        found = await self._objects.get(summary_id, WHOLE)
        return _summary(found) if found else None

    async def hold_quota(self, summary_id: str, round: int) -> None:
        """Take the quota of this round once. Raises QuotaExhausted."""
        if summary := await self.get(summary_id):
            await self._quota.take(summary.user_id, hold_of(summary_id, round))

    async def return_quota(self, summary_id: str, round: int) -> None:
        """Give back what this round holds."""
        if summary := await self.get(summary_id):
            await self._quota.give_back(summary.user_id, hold_of(summary_id, round))

    @boundary
    async def mark(self, summary_id: str, round: int, state: SummaryState) -> None:
        """Move forward to a state that is no end; one that is further already stays there."""
        await self._objects.change(summary_id, round, ORDER, {"state": forward(ORDER, state)})

    async def notes(self, summary_id: str) -> dict[str, Notes]:
        """What was stored of the sections, by key, whichever round asked for it."""
        found = await self._objects.get(summary_id, {"notes": 1})
        return msgspec.convert((found or {}).get("notes", {}), dict[str, Notes])

    @boundary
    async def store_notes(
        self, summary_id: str, round: int, key: str, notes: Notes, *, section: int, sections: int
    ) -> None:
        """Keep what the model noted of one section, and the round that asked; repeated, it replaces the same."""
        fields = literals({f"notes.{key}": notes, "section": section, "sections": sections})
        fields[f"notes.{key}"] = {"$mergeObjects": [fields[f"notes.{key}"], {"round": literal(round)}]}
        await self._objects.change(summary_id, round, ORDER, fields)

    @boundary
    async def store_composed(self, summary_id: str, round: int, composed: Composed) -> None:
        """Keep the text of this round; the first text of a round is the one that counts."""
        fields = {
            "text": composed.text,
            "chapters": composed.chapters,
            "usage": composed.usage,
            "model": composed.model,
            "composed_round": round,
        }
        first = {"$lt": [{"$ifNull": ["$composed_round", 0]}, literal(round)]}
        kept = {name: {"$cond": [first, value, f"${name}"]} for name, value in literals(fields).items()}
        await self._objects.change(summary_id, round, ORDER, kept)

    @boundary
    async def mark_completed(self, summary_id: str, round: int) -> None:
        """The summary is finished."""
        fields = {"state": literal("completed"), "finished_at": first_time("finished_at", self._clock)}
        await self._objects.change(summary_id, round, [*ORDER, "completed"], fields)

    @boundary
    async def mark_failed(self, summary_id: str, round: int, error: str) -> None:
        """The summary failed, and why."""
        fields = {**literals({"state": "failed", "error": error})}
        fields["finished_at"] = first_time("finished_at", self._clock)
        await self._objects.change(summary_id, round, [*ORDER, "failed"], fields)

    async def waiting(self, topic: str, source_id: str, after: str, limit: int) -> list[Summary]:
        """Summaries that the topic concerns and that may still wait for its source, by id, beyond `after`."""
        session_id, states = source_id, [INITIAL]
        if topic in (TRANSCRIPT_READY, TRANSCRIPT_FAILED):
            session_id, states = await self._session_of(source_id), [*WAITING]
        condition = {"session_id": session_id, "_id": {"$gt": after}, "state": {"$in": states}}
        async with wrapped():
            found = await self._collection.find(condition, WHOLE).sort("_id", 1).limit(limit).to_list(limit)
        return [_summary(one) for one in found]

    async def _session_of(self, transcript_id: str) -> str | None:
        async with wrapped():
            found = await self._transcripts.find_one({"_id": transcript_id}, {"session_id": 1})
        return found["session_id"] if found else None


def hold_of(summary_id: str, round: int) -> str:
    """The name of a round's quota hold."""
    return f"{summary_id}:{round}"


def _summary(document: dict[str, Any]) -> SummaryRecord:
    return loaded(document, "summary_id", SummaryRecord)
