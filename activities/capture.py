"""One poll of a live stream: read the list, keep what is new, and say when to look again or why it is over.

What the source does wrong is counted, waited out, or recorded as a gap. Only a source that may not be read, or that
never began, fails; a recording that has begun always ends with what is there.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Protocol, TypeVar

import msgspec

from activities.payloads import MediaSegment, PlaylistSnapshot, Session
from activities.plans import STREAM_HINT
from activities.ports import FileFound, LiveSource, Sessions, SourceFault, SourceGone, SourceRefused
from activities.timeline import CapturedSegment, Reel, address_of
from kernel import Fatal, Outcome, WaitForSignal, Yield

T = TypeVar("T")


class Recorder(Sessions, Protocol):
    """The sessions, as the recording itself needs them."""

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
        """Keep one captured segment under our number; `source_sequence` is the playlist's."""
        ...

    async def captured(self, session_id: str, beyond: int) -> Sequence[CapturedSegment]:
        """Stored segments whose number is greater than `beyond`, in order."""
        ...

    async def note_trouble(self, session_id: str, round: int, text: str | None) -> None:
        """Say what keeps the recording from going on, or that it goes on again."""
        ...


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """How patient a recording is. Times in seconds."""

    grace_s: float = 15.0  # a stream that is gone may come back within this time
    silence_s: float = 60.0  # a list that does not grow for so long is at its end
    patience_s: float = 6 * 3600.0  # a stream may begin so long after the first poll
    longest_s: float = 12 * 3600.0  # of one recording
    segments: int = 20  # kept by one call
    work_s: float = 20.0  # begun by one call
    request_s: float = 40.0  # one request; the source has narrower bounds of its own
    segment_bytes: int = 15 * 1024 * 1024  # what one document can hold


class Recorded(msgspec.Struct, frozen=True):
    """Output of `capture`."""

    ended_by: str
    recorded_s: float = 0.0
    gaps: int = 0


async def within(seconds: float, call: Awaitable[T]) -> T:
    """The call's result; a source that takes longer is at fault."""
    try:
        async with asyncio.timeout(seconds):
            return await call
    except TimeoutError as error:
        raise SourceFault(f"no answer within {seconds:g} s") from error


class Poll:
    """One call of `capture`."""

    def __init__(
        self, source: LiveSource, sessions: Recorder, limits: CaptureLimits, session: Session, reel: Reel, now: datetime
    ) -> None:
        self._source = source
        self._sessions = sessions
        self._limits = limits
        self._session = session
        self._reel = reel
        self._now = now
        self._live = session.state != "scheduled" or reel.point.stored > 0

    async def run(self) -> Outcome:
        """Read the list at the point's address and act on it."""
        try:
            snapshot = await within(self._limits.request_s, self._source.playlist(self._reel.point.media_url))
        except FileFound as answer:
            if not self._reel.point.stored:
                raise
            return await self._without_list(answer, gone=True)
        except (SourceGone, SourceRefused) as answer:
            return await self._without_list(answer, gone=True)
        except SourceFault as fault:
            return await self._without_list(fault, gone=False)
        if not (self._live or snapshot.segments or snapshot.ended):
            return await self._not_yet(SourceFault("The list names no segment yet."))
        return await self._with_list(snapshot)

    # ---- the list could not be read ----

    async def _without_list(self, answer: Exception, *, gone: bool) -> Outcome:
        if not self._live:
            return await self._not_yet(answer)
        if not self._reel.point.faults:
            await self._note(str(answer))
        self._reel.unanswered(self._session.url, self._now, gone=gone)
        if over := self._over():
            return await self._end(f"{over} ({answer})")
        return self._again(2.0)

    async def _not_yet(self, answer: Exception) -> Outcome:
        """The stream has not begun: wait longer and longer, up to the patience."""
        if isinstance(answer, SourceRefused):
            raise Fatal(str(answer)) from answer
        point, patience_s = self._reel.point, self._limits.patience_s
        if (self._now - point.started_at).total_seconds() >= patience_s:
            hours = f"{patience_s / 3600:g} hours"
            raise Fatal(f"The stream did not begin within {hours}; its address last answered: {answer}") from answer
        if not point.faults:
            await self._note(str(answer))
        self._reel.unanswered(self._session.url, self._now, gone=False)
        return self._again(min(2.0 * 1.3**point.faults, 60.0))

    # ---- the list was read ----

    async def _with_list(self, snapshot: PlaylistSnapshot) -> Outcome:
        if self._reel.point.faults:
            await self._note(None)
        self._reel.answered(snapshot.media_url)
        if snapshot.segments and self._session.state == "scheduled":
            await self._sessions.mark(self._session.session_id, self._session.round, "live", title=snapshot.title)
        await self._align(snapshot)
        fresh = self._reel.fresh(snapshot)
        self._reel.heard(self._now, news=bool(fresh))
        taken = await self._take(fresh, snapshot)
        await self._publish()
        if taken < len(fresh):
            return self._again(1.0) if self._reel.point.head_tries else Yield(self._reel.point)
        if over := "the stream ended" if snapshot.ended else self._over():
            return await self._end(over)
        return self._again(min(max(snapshot.target_duration_s / 2, 1.0), 6.0))

    async def _align(self, snapshot: PlaylistSnapshot) -> None:
        """Settle which of the list's numbers are new before anything is taken."""
        if not snapshot.segments:
            return
        reel, first = self._reel, snapshot.segments[0].sequence
        if not reel.point.begun:
            reel.begin(first)
        elif reel.is_other_count(snapshot) or (reel.falls_back(snapshot) and not await self._is_old_copy(snapshot)):
            reel.renumber(first)

    async def _is_old_copy(self, snapshot: PlaylistSnapshot) -> bool:
        """Whether a list that ends too early names segments that we keep: a cache's old copy, not a restart."""
        oldest = self._reel.placed(snapshot.segments[0]).sequence
        known = {one.address for one in await self._sessions.captured(self._session.session_id, oldest - 1)}
        return any(address_of(segment) in known for segment in snapshot.segments)

    # ---- segments ----

    async def _take(self, fresh: Sequence[MediaSegment], snapshot: PlaylistSnapshot) -> int:
        """Keep segments in order until the call's share is done or one must be tried again; how many are settled."""
        began, typical_s = monotonic(), _typical_s(snapshot)
        for count, segment in enumerate(fresh):
            if count >= self._limits.segments or monotonic() - began > self._limits.work_s:
                return count
            self._reel.reach(segment.sequence, typical_s, self._limits.longest_s)
            if not await self._settle(segment):
                return count
        return len(fresh)

    async def _settle(self, segment: MediaSegment) -> bool:
        """Keep the segment or record its loss; False where it is worth another try."""
        try:
            data = await within(self._limits.request_s, self._source.segment(segment))
        except SourceGone:
            return self._lost(segment, "not found", tries=2)
        except SourceFault:
            return self._lost(segment, "could not be read", tries=3)
        except SourceRefused as refusal:
            if not self._reel.point.stored:
                raise Fatal(str(refusal)) from refusal
            return self._lost(segment, "refused", tries=1)
        if len(data) > self._limits.segment_bytes:
            return self._lost(segment, "too large", tries=1)
        await self._keep(segment, data)
        return True

    async def _keep(self, segment: MediaSegment, data: bytes) -> None:
        placed, start_s = self._reel.placed(segment), self._reel.point.position_s
        session = self._session
        await self._sessions.store_segment(
            session.session_id, session.round, placed, start_s, data, source_sequence=segment.sequence
        )
        self._reel.keep(segment)

    def _lost(self, segment: MediaSegment, reason: str, *, tries: int) -> bool:
        self._reel.try_again()
        if self._reel.point.head_tries < tries:
            return False
        self._reel.miss(segment, reason)
        return True

    # ---- what follows ----

    def _over(self) -> str | None:
        """Why the recording is at its end although the list does not say so."""
        point, limits, now = self._reel.point, self._limits, self._now
        silent_s = (now - point.last_news_at).total_seconds()
        if point.gone_since and (now - point.gone_since).total_seconds() >= limits.grace_s:
            return f"the stream was gone for {limits.grace_s:g} s"
        if silent_s >= limits.silence_s and point.quiet >= 3:  # a pause of our own workers is no silence
            return f"the stream brought nothing new for {limits.silence_s:g} s"
        if self._session.hint == "ended" and point.quiet >= 2:
            return "the stream's source said that it ended"
        return "the longest recording was reached" if point.position_s >= limits.longest_s else None

    async def _publish(self) -> None:
        session, reel = self._session, self._reel
        if reel.recorded_s != session.captured_s or reel.gaps != session.gaps:
            await self._sessions.store_progress(session.session_id, session.round, reel.recorded_s, reel.gaps)

    async def _end(self, reason: str) -> Recorded:
        session, reel = self._session, self._reel
        await self._sessions.mark(session.session_id, session.round, "ended", tail=reel.tail)
        return Recorded(reason, reel.recorded_s, len(reel.gaps))

    async def _note(self, text: str | None) -> None:
        await self._sessions.note_trouble(self._session.session_id, self._session.round, text)

    def _again(self, delay_s: float) -> WaitForSignal:
        """Look again after `delay_s`, or at a hint from the stream's source."""
        session = self._session
        return WaitForSignal(
            STREAM_HINT, session.session_id, session.round, poll_fallback_s=delay_s, checkpoint=self._reel.point
        )


def _typical_s(snapshot: PlaylistSnapshot) -> float:
    """Length of one segment of the list."""
    known = [segment.duration_s for segment in snapshot.segments]
    return sum(known) / len(known) if known else snapshot.target_duration_s
