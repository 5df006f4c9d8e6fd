"""Removes what nobody needs any more: segments and uploads that are recorded, recordings that nothing refers to.

A worker that dies while it packages leaves a recording behind that no session names, or half of one. Nothing is removed
within a day, nor while a transcript may still be cut from the segments.
"""

import logging
from datetime import timedelta

from activities.adapters.recordings import GridRecordings
from activities.adapters.sessions import SessionRecords
from activities.adapters.transcripts import TranscriptRecords
from kernel import Clock
from kernel.mutex import Mutex

PERIOD_S = 3600.0
KEPT = timedelta(days=1)
AT_ONCE = 100

log = logging.getLogger(__name__)


class Sweeps:
    """The sweep, by one of all workers in each hour. Each part may be repeated, and may die anywhere."""

    def __init__(
        self,
        sessions: SessionRecords,
        transcripts: TranscriptRecords,
        recordings: GridRecordings,
        uploads: GridRecordings,
        clock: Clock,
        mutex: Mutex,
    ) -> None:
        self._sessions = sessions
        self._transcripts = transcripts
        self._recordings = recordings
        self._uploads = uploads
        self._clock = clock
        self._mutex = mutex

    async def run_in_turn(self) -> int:
        """Sweep; how much was removed."""
        return await self.run() if await self._mutex.take("sweep", PERIOD_S) else 0

    async def run(self) -> int:
        """The sessions whose segments went, and the recordings, whole or half, that went."""
        removed = await self._sweep_segments() + await self._sweep_recordings() + await self._sweep_uploads()
        if removed:
            log.info("%d sessions' segments and lost recordings were removed", removed)
        return removed

    async def _sweep_segments(self) -> int:
        removed = 0
        for session_id in await self._sessions.packaged_before(KEPT, AT_ONCE):
            if not await self._transcripts.in_progress(session_id):
                await self._sessions.remove_segments(session_id)
                await self._sessions.note_segments_removed(session_id)
                removed += 1
        return removed

    async def _sweep_recordings(self) -> int:
        before = self._clock.hint(0) - KEPT
        lost = [one for one in await self._recordings.stored_before(before) if not await self._sessions.names(one)]
        for media_id in lost[:AT_ONCE]:
            await self._recordings.delete(media_id)
        return len(lost[:AT_ONCE])

    async def _sweep_uploads(self) -> int:
        before = self._clock.hint(0) - KEPT
        read = [one for one in await self._uploads.stored_before(before) if not await self._sessions.reads(one)]
        for address in read[:AT_ONCE]:
            await self._uploads.delete(address)
        return len(read[:AT_ONCE])
