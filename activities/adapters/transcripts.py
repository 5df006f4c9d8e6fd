"""Shared transcripts in MongoDB: one per session, provider, model and options, made of windows.

The id follows from what the transcript is of, so that any number of subscribers who ask for it get the same one.
"""

from activities.adapters.objects import Objects, derived_id, first_time, literals, loaded
from activities.payloads import SpeechStatus, WindowPoint
from activities.records import TranscriptRecord
from kernel import Clock, boundary
from kernel.driver import Database
from kernel.writes import Document, literal, wrapped

OPEN = ("pending", "running")


class TranscriptRecords:
    """`transcripts`. `provider`, `model` and `options` are those that new transcripts are made with."""

    def __init__(self, database: Database, clock: Clock, *, provider: str, model: str, options: str = "") -> None:
        self._collection = database["transcripts"]
        self._objects = Objects(self._collection, clock)
        self._clock = clock
        self._provider = provider
        self._model = model
        self._options = options

    async def ensure_indexes(self) -> None:
        """The index that a session's transcripts are found by."""
        await self._collection.create_index([("session_id", 1), ("created_at", -1)])

    async def get(self, transcript_id: str) -> TranscriptRecord | None:
        """The transcript, or None."""
        found = await self._objects.get(transcript_id)
        return _transcript(found) if found else None

    async def of_session(self, session_id: str) -> TranscriptRecord | None:
        """The transcript to show for a session: its newest complete one, or else its newest."""
        async with wrapped():
            found = await self._collection.find({"session_id": session_id}).sort("created_at", -1).to_list(20)
        complete = [one for one in found if one["state"] == "completed"]
        return _transcript((complete or found)[0]) if found else None

    async def in_progress(self, session_id: str) -> bool:
        """Whether the session's audio is still being recognised."""
        async with wrapped():
            return await self._collection.find_one({"session_id": session_id, "state": {"$in": [*OPEN]}}) is not None

    @boundary
    async def ensure(self, session_id: str) -> TranscriptRecord:
        """The session's transcript under the settings in force, made if missing; a failed one begins its next round."""
        transcript_id = derived_id("tra", session_id, self._provider, self._model, self._options)
        identity = {"session_id": session_id, "provider": self._provider, "model": self._model}
        now = {"updated_at": self._clock.now}
        fresh = {**literals(identity | _BLANK), "round": literal(1), "created_at": self._clock.now, **now}
        again = {**literals(_BLANK), "round": {"$add": ["$round", 1]}, **now}
        branches = [
            {"case": {"$eq": [{"$type": "$created_at"}, "missing"]}, "then": {"_id": "$_id", **fresh}},
            {"case": {"$eq": ["$state", "failed"]}, "then": {"$mergeObjects": ["$$ROOT", again]}},
        ]
        replaced = [{"$replaceWith": {"$switch": {"branches": branches, "default": "$$ROOT"}}}]
        found = await self._objects.update({"_id": transcript_id}, replaced, upsert=True)
        if found is None:
            raise AssertionError("an upsert returns its document")
        return _transcript(found)

    @boundary
    async def store_progress(self, transcript_id: str, round: int, progress: float) -> None:
        """Per cent of the whole; it only grows within a round."""
        fields = {"state": literal("running"), "progress": {"$max": ["$progress", literal(progress)]}}
        await self._objects.change(transcript_id, round, OPEN, fields)

    @boundary
    async def store_window(
        self,
        transcript_id: str,
        round: int,
        window: int,
        status: SpeechStatus,
        expected_s: float,
        following: WindowPoint | None,
    ) -> None:
        """Keep the recognised text of one window, and where the next one begins; repeated, it replaces the same."""
        kept = {
            "language": status.language,
            "segments": status.segments,
            "decoded_s": status.decoded_s,
            "expected_s": expected_s,
            "error": status.error,
            "following": following,
        }
        fields = literals({f"windows.{window}": kept, "state": "running"})
        await self._objects.change(transcript_id, round, OPEN, fields)

    @boundary
    async def mark_completed(self, transcript_id: str, round: int) -> None:
        """All windows are there."""
        fields = {**literals({"state": "completed", "progress": 100.0}), **self._finished()}
        await self._objects.change(transcript_id, round, [*OPEN, "completed"], fields)

    @boundary
    async def mark_failed(self, transcript_id: str, round: int, error: str) -> None:
        """There is no transcript, and why."""
        fields = {**literals({"state": "failed", "error": error}), **self._finished()}
        await self._objects.change(transcript_id, round, [*OPEN, "failed"], fields)

    def _finished(self) -> Document:
        return {"finished_at": first_time("finished_at", self._clock)}


_BLANK = {"state": "pending", "progress": 0.0, "windows": {}, "error": None, "finished_at": None}


def _transcript(document: Document) -> TranscriptRecord:
    """The document with its windows joined."""
    windows = [document["windows"][key] for key in sorted(document["windows"], key=int)]
    segments = [segment for window in windows for segment in window["segments"]]
    joined = {
        "language": next((window["language"] for window in windows if window["language"]), None),
        "segments": segments,
        "window_count": len(windows),
        "following": windows[-1].get("following") if windows else None,
        "decoded_s": sum(window["decoded_s"] for window in windows),
        "expected_s": sum(window["expected_s"] for window in windows),
        "error": document["error"] or next((window["error"] for window in windows if window["error"]), None),
    }
    return loaded({**document, **joined}, "transcript_id", TranscriptRecord)
