"""Cuts a session's captured segments into windows of audio at silences, also while more is being captured.

A window is decoded as the packaged recording is, from the segment before it on, so that its times are those of the
recording. What was not recorded lies between windows, never inside one.
"""

import io
from collections.abc import AsyncIterator, Callable

import numpy as np
from numpy.typing import NDArray

from activities.adapters.decoding import RATE, Samples
from activities.adapters.media import HOLE_S, SegmentJoin, StoredSegment
from activities.adapters.opus import OpusTrack
from activities.payloads import AudioWindow, WindowPoint
from kernel import in_thread

SHORTEST_S, ENOUGH_S = 20.0, 35.0
"""A window of a live stream: not shorter, begun when so much is there."""
LONGEST_S = 120.0
"""Where more is there already, as much as the speech service hears at once."""
LAST_CUT_S = 30.0
"""A window is cut within its last so many seconds."""
FRAME = RATE // 20
QUIET_FRAMES = 8
"""A silence to cut in is so many frames of 50 ms."""

SegmentsBeyond = Callable[[str, int], AsyncIterator[StoredSegment]]


class SegmentWindows:
    """The port `Windows` over stored segments; `segments_beyond` gives those after a number, in order."""

    def __init__(self, segments_beyond: SegmentsBeyond) -> None:
        self._segments_beyond = segments_beyond

    async def next(self, session_id: str, point: WindowPoint, *, over: bool) -> AudioWindow | None:
        """The window that begins at `point`; None where there is not enough for one."""
        cut = _Cut(point)
        more = False
        async for segment in self._segments_beyond(session_id, point.sequence - 2):
            more = await in_thread(cut.ends_before, segment)
            if more:
                break
        return await in_thread(cut.window, over, more)


class _Samples:
    """A track in memory."""

    def __init__(self, origin_s: float) -> None:
        self.origin_s = origin_s
        self._parts: list[Samples] = []
        self._count = 0

    @property
    def seconds(self) -> float:
        return self.origin_s + self._count / RATE

    def append(self, samples: Samples) -> None:
        self._parts.append(samples)
        self._count += len(samples)

    def silence(self, seconds: float) -> None:
        self.append(np.zeros(max(round(seconds * RATE), 0), np.int16))

    def close(self) -> None:
        """Nothing is held back."""

    @property
    def whole(self) -> Samples:
        return np.concatenate(self._parts) if self._parts else np.zeros(0, np.int16)


class _Cut:
    """One window in the making. Blocking."""

    def __init__(self, point: WindowPoint) -> None:
        self._point = point
        self._track = _Samples(point.position_s - point.skip / RATE)
        self._join = SegmentJoin(self._track, point.end_s)
        self._before: StoredSegment | None = None
        self._end_s = point.end_s
        self._begins: list[tuple[int, float, float]] = []  # number, place on the track, end of the segment before
        self._gap: StoredSegment | None = None

    def ends_before(self, segment: StoredSegment) -> bool:
        """Take the segment in; or True, where the window ends before it."""
        if segment.sequence < self._point.sequence:
            self._before = segment
            return False
        if segment.start_s - self._end_s > HOLE_S:
            if self._begins:
                self._gap = segment
                return True
            self._track.origin_s = max(self._track.seconds, segment.start_s)
            self._join = SegmentJoin(self._track, segment.start_s)
        elif self._begins and self._seconds + segment.duration_s > LONGEST_S:
            return True
        elif not self._begins and self._before and not segment.discontinuity:
            self._join.prime(self._before)
        before_s = max(self._end_s, segment.start_s) if not self._begins else self._end_s
        self._begins.append((segment.sequence, self._join.add(segment), before_s))
        self._end_s = segment.start_s + segment.duration_s
        return False

    def window(self, over: bool, more: bool) -> AudioWindow | None:
        """What has been taken in; where the sound goes on, up to its last silence."""
        ends_here = self._gap is not None or (over and not more)
        if ends_here:
            self._join.flush()
        whole = self._track.whole
        samples = whole[self._point.skip :] if self._begins else whole
        if not len(samples) or not (ends_here or more or len(samples) >= ENOUGH_S * RATE):
            return None
        least_s = max(SHORTEST_S, len(samples) / RATE - LAST_CUT_S)
        cut = len(samples) if ends_here else quietest(samples, round(least_s * RATE))
        start_s = self._track.seconds - len(samples) / RATE
        end_s = start_s + cut / RATE
        return AudioWindow(_opus(samples[:cut]), start_s, end_s, self._following(end_s, ends_here))

    def _following(self, end_s: float, ends_here: bool) -> WindowPoint:
        if self._gap is not None:
            return WindowPoint(self._gap.sequence, 0, max(end_s, self._gap.start_s), self._gap.start_s)
        if ends_here:
            return WindowPoint(self._begins[-1][0] + 1, 0, end_s, self._end_s)
        sequence, began_s, before_s = [one for one in self._begins if one[1] <= end_s][-1]
        return WindowPoint(sequence, round((end_s - began_s) * RATE), end_s, before_s)

    @property
    def _seconds(self) -> float:
        return self._track.seconds - self._point.position_s


def quietest(samples: Samples, least: int) -> int:
    """The middle of the quietest stretch beyond `least` samples, or half of them; of equal ones, the last."""
    count = len(samples) // FRAME
    frames = samples[: count * FRAME].reshape(count, FRAME).astype(np.float64)
    power: NDArray[np.float64] = np.mean(np.square(frames), axis=1)
    around = np.convolve(power, np.ones(QUIET_FRAMES) / QUIET_FRAMES, "valid")
    first = min(least // FRAME, count // 2, len(around) - 1)
    candidates = around[first:]
    best = len(candidates) - 1 - int(np.argmin(candidates[::-1]))
    return (first + best + QUIET_FRAMES // 2) * FRAME


def _opus(samples: Samples) -> bytes:
    file = io.BytesIO()
    track = OpusTrack(file)
    for begin in range(0, len(samples), RATE):
        track.append(samples[begin : begin + RATE])
    track.close()
    return file.getvalue()
