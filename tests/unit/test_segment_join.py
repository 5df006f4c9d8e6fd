"""Segments on one time line: gaps, discontinuities, damage, and what cannot be recorded at all."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from activities.adapters.decoding import RATE, SampleDecoder, decode_seconds
from activities.adapters.media import NothingRecorded, SegmentJoin
from activities.adapters.opus import OpusTrack
from tests.clips import clip, hls_segments, picture_only, tone


@dataclass
class Stored:
    sequence: int
    start_s: float
    duration_s: float
    data: bytes
    discontinuity: bool = False


def joined(*segments: Stored) -> tuple[float, np.ndarray]:
    """Length as told, and the samples of the finished file."""
    file = io.BytesIO()
    join = SegmentJoin(OpusTrack(file))
    for segment in segments:
        join.add(segment)
    seconds = join.finish()
    data = file.getvalue()
    assert data.startswith(b"OggS")
    assert b"OpusHead" in data[:200]
    assert decode_seconds(data) == pytest.approx(seconds, abs=0.05)
    decoder = SampleDecoder()
    return seconds, np.concatenate([*decoder.decode(data, 1000.0), *decoder.restart()])


def loud(samples: np.ndarray, start_s: float, end_s: float) -> bool:
    part = samples[round(start_s * RATE) : round(end_s * RATE)] / 32768.0
    return float(np.sqrt(np.mean(np.square(part)))) > 0.1


def adts(seconds: float = 2.0) -> bytes:
    return clip("adts", "aac", tone(seconds, 44_100), 44_100)


def test_a_hole_in_the_numbers_is_silence_of_its_length_and_what_follows_has_its_place() -> None:
    seconds, samples = joined(Stored(143, 0.0, 2.0, adts()), Stored(174, 12.0, 2.0, adts()))
    assert seconds == pytest.approx(14.0, abs=0.15)
    assert loud(samples, 0.3, 1.7)
    assert not loud(samples, 2.3, 11.7)
    assert loud(samples, 12.3, 13.7)


def test_a_recording_that_begins_with_a_gap_begins_with_silence() -> None:
    seconds, samples = joined(Stored(5, 3.0, 2.0, adts()))
    assert seconds == pytest.approx(5.0, abs=0.1)
    assert not loud(samples, 0.0, 2.8)


def test_stereo_and_mono_of_other_rates_join_at_a_discontinuity_and_time_goes_on() -> None:
    stereo = clip("mpegts", "aac", np.stack([tone(2.0, 44_100)] * 2), 44_100)
    mono = clip("mpegts", "aac", tone(2.0, 48_000, 880), 48_000)
    seconds, samples = joined(
        Stored(0, 0.0, 2.0, stereo), Stored(1, 2.0, 2.0, mono, True), Stored(2, 4.0, 2.0, stereo, True)
    )
    assert seconds == pytest.approx(6.0, abs=0.2)
    assert all(loud(samples, second + 0.3, second + 0.7) for second in range(6))


def test_a_change_of_kind_without_a_mark_is_taken_as_well() -> None:
    mp3 = clip("mp3", "libmp3lame", tone(2.0, 32_000), 32_000)
    seconds, samples = joined(Stored(0, 0.0, 2.0, adts()), Stored(1, 2.0, 2.0, mp3), Stored(2, 4.0, 2.0, adts()))
    assert seconds == pytest.approx(6.0, abs=0.3)
    assert all(loud(samples, second + 0.3, second + 0.7) for second in range(6))


def test_inside_a_run_the_decoded_audio_is_the_clock_whatever_the_list_says(tmp_path: Path) -> None:
    segments = hls_segments(tmp_path, "aac", tone(8.0, 44_100), 44_100)
    declared = [Stored(n, n * 2.3, 2.3, data) for n, data in enumerate(segments[:4])]
    seconds, samples = joined(*declared)
    assert seconds == pytest.approx(8.0, abs=0.1)
    assert all(loud(samples, second / 2, second / 2 + 0.4) for second in range(1, 15))


def test_a_segment_that_cannot_be_decoded_is_silence_of_its_length() -> None:
    seconds, samples = joined(
        Stored(0, 0.0, 2.0, adts()), Stored(1, 2.0, 2.0, b"<html>log in</html>"), Stored(2, 4.0, 2.0, adts())
    )
    assert seconds == pytest.approx(6.0, abs=0.15)
    assert not loud(samples, 2.3, 3.7)
    assert loud(samples, 4.3, 5.7)


def test_a_segment_of_which_most_is_damaged_still_fills_its_place() -> None:
    seconds, samples = joined(Stored(0, 0.0, 4.0, adts(4.0)[:9_000]), Stored(1, 4.0, 2.0, adts()))
    assert seconds == pytest.approx(6.0, abs=0.15)
    assert loud(samples, 4.3, 5.7)


def test_a_segment_far_longer_than_it_claims_is_cut() -> None:
    flood = clip("flac", "flac", tone(200.0, 8_000) * 0, 8_000)
    seconds, _ = joined(Stored(0, 0.0, 2.0, flood))
    assert seconds == pytest.approx(66.0, abs=0.1)


@pytest.mark.parametrize(
    ("segments", "reason"),
    [
        ([], "no segment"),
        ([Stored(0, 0.0, 1.0, picture_only())], r"None of the 1 .*no audio"),
        ([Stored(0, 0.0, 1.0, b""), Stored(1, 1.0, 1.0, b"junk")], r"None of the 2 .*segment 0: it is empty"),
    ],
    ids=["none", "picture only", "junk"],
)
def test_a_recording_without_any_audio_has_a_named_end_that_no_retry_changes(segments, reason: str) -> None:
    join = SegmentJoin(OpusTrack(io.BytesIO()))
    for segment in segments:
        join.add(segment)
    with pytest.raises(NothingRecorded, match=reason):
        join.finish()
