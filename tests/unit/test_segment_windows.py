"""A recording in windows, while it is still being made: together they are the recording, cut where nobody speaks."""

import io
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from activities.adapters.decoding import RATE, SampleDecoder
from activities.adapters.media import SegmentJoin
from activities.adapters.opus import OpusTrack
from activities.adapters.windows import ENOUGH_S, LAST_CUT_S, LONGEST_S, SHORTEST_S, SegmentWindows, quietest
from activities.payloads import AudioWindow, WindowPoint
from tests.clips import hls_segments, picture_only
from tests.unit.test_segment_join import Stored

RATE_IN = 16_000
SEGMENT_S = 4.0


def speech(seconds: float) -> NDArray[np.float32]:
    """Bursts of noise of three seconds, each at a loudness of its own, half a second of silence between."""
    random = np.random.default_rng(7)
    samples = random.normal(0, 0.1, round(seconds * RATE_IN)).astype(np.float32)
    at = np.arange(len(samples)) / RATE_IN
    samples *= 0.3 + 0.7 * np.abs(np.sin(at * 0.37)).astype(np.float32)
    samples[at % 3.5 > 3.0] = 0.0
    return samples


def stored(folder: Path, seconds: float, *, first: int = 0, start_s: float = 0.0, kind: str = "mpegts") -> list[Stored]:
    pieces = hls_segments(folder, "aac", speech(seconds), RATE_IN, seconds=SEGMENT_S, kind=kind)
    return [Stored(first + at, start_s + at * SEGMENT_S, SEGMENT_S, data) for at, data in enumerate(pieces)]


class Session:
    """Segments of which some are stored by now."""

    def __init__(self, segments: Sequence[Stored]) -> None:
        self._segments = list(segments)
        self.captured = len(self._segments)
        self.windows = SegmentWindows(self._beyond)

    async def _beyond(self, session_id: str, beyond: int) -> AsyncIterator[Stored]:
        for segment in self._segments[: self.captured]:
            if segment.sequence > beyond:
                yield segment

    async def all(self, *, live: bool = False) -> list[AudioWindow]:
        """Every window there is; `live`: each segment comes by itself, and the stream ends after the last one."""
        found: list[AudioWindow] = []
        point, self.captured = WindowPoint(), 0 if live else len(self._segments)
        while True:
            over = self.captured == len(self._segments)
            window = await self.windows.next("ses_1", point, over=over)
            if window:
                found.append(window)
                point = window.following
            elif over:
                return found
            else:
                self.captured += 1


def samples_of(audio: bytes) -> NDArray[np.float64]:
    decoder = SampleDecoder()
    return np.concatenate([*decoder.decode(audio, 1000.0), *decoder.restart()]).astype(np.float64)


def recording(segments: Sequence[Stored]) -> NDArray[np.float64]:
    file = io.BytesIO()
    join = SegmentJoin(OpusTrack(file))
    for segment in segments:
        join.add(segment)
    join.finish()
    return samples_of(file.getvalue())


def loudness(samples: NDArray[np.float64], start_s: float, end_s: float) -> NDArray[np.float64]:
    """Power of each 50 ms."""
    part = samples[round(start_s * RATE) : round(end_s * RATE)]
    count = len(part) // 800
    return np.sqrt(np.mean(np.square(part[: count * 800].reshape(count, 800)), axis=1))


def check_same(windows: Sequence[AudioWindow], whole: NDArray[np.float64]) -> None:
    """Each window sounds as the recording does at its time."""
    for window in windows:
        heard = samples_of(window.audio)
        assert len(heard) / RATE == pytest.approx(window.end_s - window.start_s, abs=0.1)
        mine = loudness(heard, 0, window.end_s - window.start_s - 0.1)
        theirs = loudness(whole, window.start_s, window.end_s - 0.1)
        size = min(len(mine), len(theirs))
        assert np.corrcoef(mine[:size], theirs[:size])[0, 1] > 0.9, window.start_s


@pytest.mark.parametrize("kind", ["mpegts", "fmp4"])
async def test_the_windows_of_a_live_stream_are_the_recording_without_a_gap(tmp_path: Path, kind: str) -> None:
    segments = stored(tmp_path, 110.0, kind=kind)
    windows = await Session(segments).all(live=True)
    assert windows[0].start_s == 0.0
    assert all(a.end_s == pytest.approx(b.start_s, abs=0.001) for a, b in pairwise(windows))
    assert windows[-1].end_s == pytest.approx(110.0, abs=0.5)
    assert all(SHORTEST_S - 1 <= one.end_s - one.start_s <= ENOUGH_S + SEGMENT_S for one in windows[:-1])
    check_same(windows, recording(segments))


async def test_windows_are_cut_where_nobody_speaks(tmp_path: Path) -> None:
    segments = stored(tmp_path, 110.0)
    whole = recording(segments)
    for window in (await Session(segments).all(live=True))[:-1]:
        assert loudness(whole, window.end_s - 0.1, window.end_s + 0.1).max() < 300


async def test_only_the_tail_is_left_when_a_stream_ends(tmp_path: Path) -> None:
    session = Session(stored(tmp_path, 80.0))
    point = WindowPoint()
    while window := await session.windows.next("ses_1", point, over=False):
        point = window.following
    assert 80.0 - point.position_s <= ENOUGH_S + SEGMENT_S


async def test_what_was_not_recorded_lies_between_windows(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = stored(tmp_path / "a", 12.0)[:3]
    second = stored(tmp_path / "b", 12.0, first=20, start_s=600.0)[:3]
    windows = await Session([*first, *second]).all(live=True)
    assert [round(one.start_s) for one in windows] == [0, 600]
    assert [round(one.end_s) for one in windows] == [12, 612]
    check_same(windows, recording([*first, *second]))


async def test_a_recording_that_is_over_is_taken_in_long_windows(tmp_path: Path) -> None:
    windows = await Session(stored(tmp_path, 110.0)).all()
    assert [round(one.end_s) for one in windows] == [110]


async def test_a_transcription_that_is_behind_takes_longer_windows(tmp_path: Path) -> None:
    session = Session(stored(tmp_path, 150.0))
    window = await session.windows.next("ses_1", WindowPoint(), over=False)
    assert window
    assert LONGEST_S - LAST_CUT_S - SEGMENT_S <= window.end_s <= LONGEST_S


async def test_a_spliced_segment_begins_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = stored(tmp_path / "a", 20.0)
    second = stored(tmp_path / "b", 40.0, first=len(first), start_s=len(first) * SEGMENT_S)
    second[0].discontinuity = True
    windows = await Session([*first, *second]).all(live=True)
    check_same(windows, recording([*first, *second]))


async def test_without_audio_there_is_no_window() -> None:
    nothing = Session([])
    assert await nothing.windows.next("ses_1", WindowPoint(), over=True) is None
    silent = Session([Stored(0, 0.0, 0.3, picture_only(seconds=0.3))])
    assert await silent.windows.next("ses_1", WindowPoint(), over=False) is None


def test_of_two_silences_the_later_one_is_taken_and_none_before_the_least_length() -> None:
    samples = (np.random.default_rng(1).normal(0, 3000, 60 * RATE)).astype(np.int16)
    for quiet_s in (5, 30, 50):
        samples[quiet_s * RATE : (quiet_s + 1) * RATE] = 0
    assert 50 <= quietest(samples, 20 * RATE) / RATE <= 51
