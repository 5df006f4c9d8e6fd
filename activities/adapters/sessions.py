"""Streams, their sessions and the captured segments, in MongoDB.

A stream is its normalised address; its current session is the one that new subscribers join. A segment is one document
per session and number, so that capturing it again is a duplicate key and nothing more.
"""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from secrets import token_urlsafe
from typing import Literal
from urllib.parse import unquote, urlsplit

import msgspec
from pymongo.errors import DuplicateKeyError

from activities.adapters.guard import parsed_url
from activities.adapters.objects import Objects, derived_id, first_time, forward, literals, loaded
from activities.adapters.recordings import session_of
from activities.payloads import Gap, MediaSegment, Packaged, SessionState, StreamHook, Tail
from activities.records import SessionRecord
from activities.timeline import CapturedSegment, address_of
from activities.uploads import is_upload
from kernel import Clock, StaleRound, boundary
from kernel.driver import Database
from kernel.writes import Document, literal, wrapped

ORDER = ["scheduled", "live", "ended", "ready"]
OPEN = ("scheduled", "live", "ended")
PAGE = 16
USUAL_NAMES = {"index", "master", "playlist", "manifest", "chunklist", "live", "stream", "hls", "media", "main"}


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """A captured segment. `start_s` is its place on the session's time line."""

    sequence: int
    start_s: float
    duration_s: float
    data: bytes
    discontinuity: bool


def normalised(url: str) -> str:
    """The one form of all ways to write an address: no fragment, no default port, a path. Raises SourceRefused."""
    if is_upload(url):
        return url
    parts = urlsplit(str(parsed_url(url)))
    return parts._replace(path=parts.path or "/").geturl()


def title_of(url: str) -> str:
    """A title for a stream that has told none: the last word of its path that says something, or its host."""
    parts = urlsplit(url)
    names = [name.rpartition(".")[0] or name for name in unquote(parts.path).split("/")]
    telling = [name for name in names if name and name.lower() not in USUAL_NAMES]
    return " ".join(re.split(r"[-_\s]+", telling[-1]))[:200] if telling else parts.netloc


class SessionRecords:
    """`streams`, `sessions` and `segments`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._streams = Objects(database["streams"], clock)
        self._sessions = Objects(database["sessions"], clock)
        self._segments = database["segments"]
        self._collection = database["sessions"]
        self._clock = clock

    async def ensure_indexes(self) -> None:
        """Segments are read by ranges of their `_id`, all else by id: nothing to create."""

    # ---- subscribers ----

    async def attach(self, url: str, title: str = "") -> SessionRecord:
        """The current session of the stream at `url`, both made where they are missing. Raises SourceRefused."""
        address = normalised(url)
        stream = await self.keep_stream(address)
        return await self.keep_session(stream["_id"], stream["current"], address, title or title_of(address))

    async def follow(self, session: SessionRecord) -> SessionRecord:
        """The session after `session`, which is over: made, then made the stream's current one."""
        following = await self.keep_session(session.stream_id, session.number + 1, session.url, session.title)
        await self.begin_next(session.stream_id, session.number)
        return following

    @boundary
    async def keep_stream(self, address: str) -> Document:
        """The stream of a normalised address."""
        fields = {"url": address, "current": 1, "secret": token_urlsafe(32)}
        found, _ = await self._streams.create(derived_id("str", address), literals(fields))
        return found

    @boundary
    async def keep_session(self, stream_id: str, number: int, address: str, title: str) -> SessionRecord:
        """The stream's session of that number."""
        fields = {"stream_id": stream_id, "number": number, "url": address, "title": title}
        fields |= {"state": "scheduled", "round": 1, "captured_s": 0.0, "gaps": []}
        found, _ = await self._sessions.create(derived_id("ses", stream_id, number), literals(fields))
        return _session(found)

    @boundary
    async def begin_next(self, stream_id: str, number: int) -> None:
        """Move the stream on from session `number`, once."""
        following = {"$max": ["$current", literal(number + 1)]}
        changes = {"current": following, "updated_at": self._clock.now}
        await self._streams.update({"_id": stream_id}, [{"$set": changes}])

    @boundary
    async def revive(self, session_id: str, round: int) -> SessionRecord:
        """Begin the next round of an unavailable session; what was captured stays. The session, whoever revived it."""
        ended = {"$cond": [{"$ifNull": ["$ended_at", False]}, "ended", "scheduled"]}
        fields = {"state": ended, "round": literal(round + 1), **literals({"error": None, "trouble": None})}
        try:
            return _session(await self._sessions.change(session_id, round, ["unavailable"], fields))
        except StaleRound:
            return await self._existing(session_id)

    @boundary
    async def store_hint(self, session_id: str, hint: Literal["started", "ended"]) -> bool:
        """Keep the word of the stream's own system; False where the session has ended already."""
        condition = {"_id": session_id, "state": {"$in": [*OPEN]}}
        changes = {"hint": literal(hint), "updated_at": self._clock.now}
        return await self._sessions.update(condition, [{"$set": changes}]) is not None

    # ---- the port Sessions ----

    async def get(self, session_id: str) -> SessionRecord | None:
        """The session, or None."""
        found = await self._sessions.get(session_id)
        return _session(found) if found else None

    async def hook(self, stream_id: str) -> StreamHook | None:
        """What signs the hooks of a stream, and the session that they are about."""
        stream = await self._streams.get(stream_id)
        if stream is None:
            return None
        return StreamHook(stream["secret"], derived_id("ses", stream_id, stream["current"]))

    async def several(self, session_ids: Sequence[str]) -> dict[str, SessionRecord]:
        """Sessions by id."""
        wanted = list(set(session_ids))
        async with wrapped():
            found = await self._collection.find({"_id": {"$in": wanted}}).to_list(None)
        return {one["_id"]: _session(one) for one in found}

    @boundary
    async def mark(
        self,
        session_id: str,
        round: int,
        state: SessionState,
        *,
        title: str | None = None,
        tail: Tail | None = None,
        file: bool = False,
    ) -> None:
        """Move the session forward; one that is further already stays there."""
        fields: Document = {"state": forward(ORDER, state)}
        if state == "live":
            fields["live_at"] = first_time("live_at", self._clock)
        if state == "ended":
            fields["ended_at"] = first_time("ended_at", self._clock)
        if title:
            fields["title"] = literal(title[:200])
        if tail:
            fields |= literals({"tail": tail})
        if file:
            fields["file"] = literal(True)
        await self._sessions.change(session_id, round, OPEN, fields)

    @boundary
    async def store_segment(
        self,
        session_id: str,
        round: int,
        segment: MediaSegment,
        start_s: float,
        data: bytes,
        *,
        source_sequence: int | None = None,
    ) -> None:
        """Keep one captured segment; a second capture of the same number changes nothing."""
        await self._check_open(session_id, round)
        document = {
            "_id": _segment_id(session_id, segment.sequence),
            "session_id": session_id,
            "sequence": segment.sequence,
            "source_sequence": segment.sequence if source_sequence is None else source_sequence,
            "address": address_of(segment),
            "start_s": start_s,
            "duration_s": segment.duration_s,
            "discontinuity": segment.discontinuity,
            "data": data,
        }
        try:
            async with wrapped():
                await self._segments.insert_one(document)
        except DuplicateKeyError:
            return

    @boundary
    async def store_progress(self, session_id: str, round: int, captured_s: float, gaps: Sequence[Gap]) -> None:
        """Publish how much has been captured."""
        await self._sessions.change(session_id, round, OPEN, literals({"captured_s": captured_s, "gaps": list(gaps)}))

    @boundary
    async def note_trouble(self, session_id: str, round: int, text: str | None) -> None:
        """Say what keeps the recording from going on, or (None) that it goes on."""
        fields = literals({"trouble": text[:500] if text else None}) | {"trouble_at": self._clock.now}
        await self._sessions.change(session_id, round, OPEN, fields)

    @boundary
    async def attach_media(self, session_id: str, round: int, packaged: Packaged) -> None:
        """Refer to the packaged recording."""
        fields = {"media_id": packaged.media_id, "duration_s": packaged.duration_s, "media_bytes": packaged.size_bytes}
        await self._sessions.change(session_id, round, OPEN, literals(fields))

    @boundary
    async def mark_ready(self, session_id: str, round: int) -> None:
        """The recording is complete."""
        await self._sessions.change(session_id, round, ORDER, {"state": literal("ready")})

    @boundary
    async def mark_unavailable(self, session_id: str, round: int, error: str) -> None:
        """There is no recording, and why."""
        fields = literals({"state": "unavailable", "error": error})
        await self._sessions.change(session_id, round, [*OPEN, "unavailable"], fields)

    # ---- segments ----

    async def captured(self, session_id: str, beyond: int) -> list[CapturedSegment]:
        """Stored segments whose number is greater than `beyond`, in order."""
        async with wrapped():
            found = await self._segments.find(_after(session_id, beyond), {"data": 0}).sort("_id", 1).to_list(None)
        return [msgspec.convert(one, CapturedSegment) for one in found]

    async def segments(self, session_id: str, beyond: int = -1) -> AsyncIterator[StoredSegment]:
        """The stored segments whose number is greater than `beyond`, in order, a few in memory at a time."""
        last = beyond
        while True:
            async with wrapped():
                page = await self._segments.find(_after(session_id, last)).sort("_id", 1).limit(PAGE).to_list(PAGE)
            for one in page:
                yield StoredSegment(
                    one["sequence"], one["start_s"], one["duration_s"], one["data"], one["discontinuity"]
                )
            if len(page) < PAGE:
                return
            last = page[-1]["sequence"]

    # ---- what nobody needs any more ----

    async def packaged_before(self, age: timedelta, limit: int) -> list[str]:
        """Ids of sessions that have been ready for so long and still have their segments."""
        old = {"$lte": ["$ended_at", self._clock.after(-age.total_seconds())]}
        condition = {"state": "ready", "media_id": {"$ne": None}, "segments_removed_at": None, "$expr": old}
        async with wrapped():
            found = await self._collection.find(condition, {"_id": 1}).limit(limit).to_list(limit)
        return [one["_id"] for one in found]

    @boundary
    async def remove_segments(self, session_id: str) -> None:
        """Remove the session's segments; its recording has all of them."""
        async with wrapped():
            await self._segments.delete_many(_after(session_id, -1))

    @boundary
    async def note_segments_removed(self, session_id: str) -> None:
        """Nothing is left to remove of this session."""
        await self._sessions.update({"_id": session_id}, [{"$set": {"segments_removed_at": self._clock.now}}])

    async def reads(self, address: str) -> bool:
        """Whether the file at a normalised address is still to be recorded."""
        session_id = derived_id("ses", derived_id("str", address), 1)
        async with wrapped():
            return await self._collection.find_one({"_id": session_id, "state": {"$in": [*OPEN]}}) is not None

    async def names(self, media_id: str) -> bool:
        """Whether the session that a recording was made for refers to it."""
        async with wrapped():
            return await self._collection.find_one({"_id": session_of(media_id), "media_id": media_id}) is not None

    # ---- shared ----

    async def _check_open(self, session_id: str, round: int) -> None:
        async with wrapped():
            found = await self._collection.find_one(
                {"_id": session_id, "round": round, "state": {"$in": [*OPEN]}}, {"_id": 1}
            )
        if found is None:
            raise StaleRound(f"{session_id} does not serve round {round} any more, or has ended.")

    async def _existing(self, session_id: str) -> SessionRecord:
        found = await self._sessions.get(session_id)
        if found is None:
            raise StaleRound(f"the session {session_id} was removed")
        return _session(found)


def _session(document: Document) -> SessionRecord:
    return loaded(document, "session_id", SessionRecord)


def _segment_id(session_id: str, sequence: int) -> str:
    return f"{session_id}:{sequence:08d}"


def _after(session_id: str, sequence: int) -> Document:
    """Filter: the session's segments beyond a number. `;` is the character after `:`."""
    return {"_id": {"$gte": _segment_id(session_id, max(sequence + 1, 0)), "$lt": f"{session_id};"}}
