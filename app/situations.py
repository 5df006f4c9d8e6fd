"""Gathers what is known of summaries, for one or for a page: sessions, transcripts and workflow snapshots."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from activities.plans import summary_key, transcript_key, watch_key
from activities.records import SessionRecord, SummaryRecord, TranscriptRecord
from app.reasons import ENDED, Situation, Snapshot, snapshot_of
from app.subscription_ports import SessionBook, Snapshots, TranscriptBook
from kernel import workflow_id_of

T = TypeVar("T")


class Situations:
    """Reads situations. What several summaries share is read once."""

    def __init__(self, sessions: SessionBook, transcripts: TranscriptBook, snapshots: Snapshots) -> None:
        self._sessions = sessions
        self._transcripts = transcripts
        self._snapshots = snapshots

    async def one(self, summary: SummaryRecord) -> Situation:
        """The situation of a summary, its steps included also when it has ended."""
        (situation,) = await self._several([summary], [summary])
        return situation

    async def several(self, summaries: Sequence[SummaryRecord]) -> list[Situation]:
        """The situations of a page; the workflows of those that have ended are not looked at."""
        return await self._several(summaries, [summary for summary in summaries if summary.state not in ENDED])

    async def _several(self, summaries: Sequence[SummaryRecord], looked_at: Sequence[SummaryRecord]) -> list[Situation]:
        sessions = await self._sessions.several([summary.session_id for summary in summaries])
        waiting = {
            s.session_id: sessions[s.session_id] for s in looked_at if s.state not in ENDED and s.session_id in sessions
        }
        own = await _each(looked_at, lambda one: one.summary_id, self._own)
        watch = await _each(waiting.values(), lambda one: one.session_id, self._watch)
        transcripts = await _each(waiting, str, self._transcripts.of_session)
        speech = await _each([t for t in transcripts.values() if t], lambda one: one.session_id, self._speech)
        return [
            Situation(
                summary=summary,
                session=sessions.get(summary.session_id),
                transcript=transcripts.get(summary.session_id),
                own=own.get(summary.summary_id),
                watch=watch.get(summary.session_id),
                speech=speech.get(summary.session_id),
            )
            for summary in summaries
        ]

    async def _own(self, summary: SummaryRecord) -> Snapshot | None:
        return await self._snapshot(summary_key(summary.summary_id), summary.round)

    async def _watch(self, session: SessionRecord) -> Snapshot | None:
        return await self._snapshot(watch_key(session.session_id), session.round)

    async def _speech(self, transcript: TranscriptRecord) -> Snapshot | None:
        return await self._snapshot(transcript_key(transcript.transcript_id), transcript.round)

    async def _snapshot(self, biz_key: str, round: int) -> Snapshot | None:
        return snapshot_of(await self._snapshots.snapshot(workflow_id_of(biz_key)), round)


K = TypeVar("K")


async def _each(items: Iterable[K], name: Callable[[K], str], read: Callable[[K], Awaitable[T]]) -> Mapping[str, T]:
    """What `read` gives for each item, by the item's name; read side by side."""
    listed = list(items)
    found = await asyncio.gather(*(read(item) for item in listed))
    return {name(item): one for item, one in zip(listed, found, strict=True)}
