"""Which workflows belong together: who records a session, who transcribes it, what was told of it, who sums it up.

Found by what snapshots say of their inputs; no workflow knows of it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from activities.plans import STREAM_FANOUT, SUMMARY, transcript_key, watch_key
from activities.records import TranscriptRecord
from kernel import workflow_id_of

SHOWN = 50
Document = dict[str, Any]


class Snapshots(Protocol):
    """The operators' view of workflows."""

    async def snapshot(self, workflow_id: str) -> Document | None: ...
    async def with_input(self, field: str, values: Sequence[str], type: str, limit: int) -> list[Document]: ...


class Transcripts(Protocol):
    """The transcripts of sessions."""

    async def get(self, transcript_id: str) -> TranscriptRecord | None: ...
    async def of_session(self, session_id: str) -> TranscriptRecord | None: ...


class Relations:
    """The workflows around one session."""

    def __init__(self, snapshots: Snapshots, transcripts: Transcripts) -> None:
        self._snapshots = snapshots
        self._transcripts = transcripts

    async def __call__(self, snapshot: Mapping[str, Any]) -> list[Document]:
        """Snapshots of the others, in the order of the work; at most 50 fan-outs and 50 summaries, the oldest first."""
        given = snapshot.get("input") or {}
        source_id = given.get("source_id")
        transcript_id = given.get("transcript_id") or source_id
        transcript = await self._transcripts.get(transcript_id) if transcript_id else None
        session_id = given.get("session_id") or (transcript.session_id if transcript else source_id)
        if session_id is None:
            return []
        transcript = transcript or await self._transcripts.of_session(session_id)
        found = await self._around(session_id, transcript.transcript_id if transcript else None)
        return [one for one in found if one["workflow_id"] != snapshot["workflow_id"]]

    async def _around(self, session_id: str, transcript_id: str | None) -> list[Document]:
        keys = [watch_key(session_id), *([transcript_key(transcript_id)] if transcript_id else [])]
        sources = [session_id, *([transcript_id] if transcript_id else [])]
        shared, told, summaries = await asyncio.gather(
            asyncio.gather(*(self._snapshots.snapshot(workflow_id_of(key)) for key in keys)),
            self._snapshots.with_input("source_id", sources, STREAM_FANOUT.type, SHOWN),
            self._snapshots.with_input("session_id", [session_id], SUMMARY.type, SHOWN),
        )
        return [*(one for one in shared if one), *told, *summaries]
