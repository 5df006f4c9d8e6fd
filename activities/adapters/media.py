"""Packages a session's captured segments into one recording: 16 kHz mono Opus in Ogg, missing parts as silence.

The recording's clock is the decoded audio: inside a continuous run nothing is cut or stretched, whatever the playlist
says of durations; after a hole or a discontinuity the next segment begins at its place on the session's time line.
"""

import logging
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import IO, Protocol

from activities.adapters.decoding import NoAudio, SampleDecoder, Samples, Undecodable
from activities.adapters.opus import OpusTrack
from activities.adapters.recordings import GridRecordings, new_media_id
from activities.payloads import Packaged
from kernel import Fatal, in_thread

MAX_RECORDING_S = 24 * 3600.0
HOLE_S = 0.5  # a segment that begins later than this after the one before leaves a hole
COPY_BYTES = 256 * 1024

log = logging.getLogger(__name__)


class StoredSegment(Protocol):
    """A captured segment as the session's records keep it; `start_s` is on the session's time line."""

    @property
    def sequence(self) -> int: ...
    @property
    def start_s(self) -> float: ...
    @property
    def duration_s(self) -> float: ...
    @property
    def data(self) -> bytes: ...
    @property
    def discontinuity(self) -> bool: ...


SegmentsOf = Callable[[str], AsyncIterator[StoredSegment]]


class NothingRecorded(Fatal):
    """The recording holds no audio."""


class OggOpusPackager:
    """Reads a session's segments in order and stores the recording they make."""

    def __init__(self, segments_of: SegmentsOf, recordings: GridRecordings) -> None:
        self._segments_of = segments_of
        self._recordings = recordings

    async def package(self, session_id: str, round: int) -> Packaged:
        """Decode all stored segments of the session into one recording, and store it under a new id.

        Raises NothingRecorded (which no retry helps) where no segment holds audio that can be decoded.
        """
        with tempfile.TemporaryFile() as file:
            join = SegmentJoin(OpusTrack(file))
            async for segment in self._segments_of(session_id):
                await in_thread(join.add, segment)
            seconds = await in_thread(join.finish)
            media_id = new_media_id(session_id, round)
            size = await self._recordings.store(media_id, pieces(file))
        return Packaged(media_id=media_id, duration_s=seconds, size_bytes=size)


class Track(Protocol):
    """Where samples go, one after the other."""

    @property
    def seconds(self) -> float: ...
    def append(self, samples: Samples) -> None: ...
    def silence(self, seconds: float) -> None: ...
    def close(self) -> None: ...


class SegmentJoin:
    """Puts segments on one time line and writes them to a track. Blocking.

    `end_s`: where the segment before the first one ended, by the playlist's word.
    """

    def __init__(self, track: Track, end_s: float = 0.0) -> None:
        self._track = track
        self._decoder = SampleDecoder()
        self._end_s = end_s
        self._heard = False
        self._failures: list[str] = []

    def prime(self, segment: StoredSegment) -> None:
        """Let the decoder hear the segment before the first one, so that the first one begins without a seam."""
        with suppress(NoAudio, Undecodable):
            for _ in self._decoder.decode(segment.data, 60.0 + 3 * segment.duration_s):
                pass

    def add(self, segment: StoredSegment) -> float:
        """Add the next segment; where on the track its own sound begins.

        What of it cannot be decoded is silence, and a line in the log.
        """
        if segment.discontinuity or segment.start_s - self._end_s > HOLE_S:
            self._place(segment.start_s)
        began_s = self._track.seconds
        self._end_s = segment.start_s + segment.duration_s
        try:
            decoded_s = self._decode(segment)
        except (NoAudio, Undecodable) as error:
            decoded_s = 0.0
            self._failures.append(f"segment {segment.sequence}: {error}")
        if segment.duration_s - decoded_s > max(HOLE_S, segment.duration_s / 2):
            log.warning("segment %d: %.1f of %.1f s decoded", segment.sequence, decoded_s, segment.duration_s)
            self._place(self._end_s)
        return began_s

    def finish(self) -> float:
        """Complete the file. Returns its length in seconds; raises NothingRecorded."""
        self.flush()
        self._track.close()
        if not self._heard:
            raise NothingRecorded(self._reason())
        return self._track.seconds

    def _decode(self, segment: StoredSegment) -> float:
        """Decode one segment; returns how many seconds came out of it."""
        before_s = self._track.seconds
        limit_s = min(60.0 + 3 * segment.duration_s, MAX_RECORDING_S - before_s)
        for samples in self._decoder.decode(segment.data, limit_s):
            self._track.append(samples)
            self._heard = True
        return self._track.seconds - before_s

    def flush(self) -> None:
        """End the run: write what the decoder still holds."""
        for samples in self._decoder.restart():
            self._track.append(samples)

    def _place(self, start_s: float) -> None:
        """End the run, and go on at `start_s` where that lies ahead: time never runs backwards."""
        self.flush()
        self._track.silence(min(start_s, MAX_RECORDING_S) - self._track.seconds)

    def _reason(self) -> str:
        if not self._failures:
            return "Nothing was recorded: no segment of the stream could be captured."
        return (
            f"None of the {len(self._failures)} recorded segments holds audio that can be read ({self._failures[0]})."
        )


async def pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    """A file from its beginning, piece by piece."""
    file.seek(0)
    while piece := await in_thread(file.read, COPY_BYTES):
        yield piece
