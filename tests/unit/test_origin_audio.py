"""Recordings, their segments and their layout in time."""

import io
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures import adts, containers, encoding
from fixtures.adts import SAMPLES_PER_FRAME, Recording
from fixtures.timeline import Timeline, lay_out


@pytest.fixture(scope="module")
def tone() -> Recording:
    """Four seconds of a tone."""
    times_s = np.arange(4 * encoding.RATE_HZ) / encoding.RATE_HZ
    samples = (8000 * np.sin(2 * np.pi * 440 * times_s)).astype(np.int16)
    return adts.split(encoding.encode(samples, encoding.RATE_HZ))


def decoded(data: bytes, container: str) -> tuple[list[float], int]:
    """The times of the decoded frames in seconds, and how many samples they hold."""
    with av.open(io.BytesIO(data), "r", format=container) as source:
        frames = list(source.decode(audio=0))
    return [float(frame.time or 0) for frame in frames], sum(frame.samples for frame in frames)


def test_a_recording_is_the_sum_of_its_frames(tone: Recording):
    whole = b"".join(tone.frames)
    assert adts.split(whole) == tone
    assert tone.rate_hz == encoding.RATE_HZ
    assert tone.duration_s == pytest.approx(4, abs=0.15)


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (lambda data: b"", "empty"),
        (lambda data: b"RIFF" + data, "no ADTS frame at byte 0"),
        (lambda data: data[:-1], "cut off"),
        (lambda data: data + b"\xff", "no ADTS frame at byte"),
    ],
)
def test_bytes_that_are_not_whole_frames_are_refused(tone: Recording, damage, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        adts.split(damage(b"".join(tone.frames)))


def test_a_packed_segment_starts_with_its_timestamp(tone: Recording):
    segment = containers.packed_audio(tone.frames[:20], begins_s=12.5)
    tag, frames = segment[:73], segment[73:]
    assert tag[:3] == b"ID3"
    assert int.from_bytes(tag[-8:], "big") == 12.5 * 90_000
    assert frames == b"".join(tone.frames[:20])
    assert decoded(segment, "aac")[1] == 20 * SAMPLES_PER_FRAME


def test_a_packed_timestamp_wraps_after_33_bits(tone: Recording):
    beyond_s = 2**33 / 90_000 + 1
    assert int.from_bytes(containers.packed_audio(tone.frames[:1], beyond_s)[65:73], "big") == 90_000


def test_a_transport_stream_keeps_every_frame_and_its_time(tone: Recording):
    times_s, samples = decoded(containers.wrap("ts", tone.frames[:20], tone.rate_hz, begins_s=90.0), "mpegts")
    assert samples == 20 * SAMPLES_PER_FRAME
    assert times_s == pytest.approx([90 + n * SAMPLES_PER_FRAME / tone.rate_hz for n in range(20)], abs=0.001)


def test_transport_stream_segments_can_be_joined(tone: Recording):
    halves = [containers.wrap("ts", tone.frames[n : n + 20], tone.rate_hz, begins_s=n) for n in (0, 20)]
    assert decoded(b"".join(halves), "mpegts")[1] == 40 * SAMPLES_PER_FRAME


def test_the_same_segment_is_the_same_bytes(tone: Recording):
    first, second = (containers.wrap("ts", tone.frames[:20], tone.rate_hz, begins_s=3) for _ in range(2))
    assert first == second


def test_other_formats_are_brought_into_the_one_kept_here(tmp_path: Path):
    stereo = np.zeros((1, 2 * 48_000), dtype=np.int16)
    with av.open(tmp_path / "silence.wav", "w") as sink:
        track = sink.add_stream("pcm_s16le", rate=48_000, layout="stereo")
        frame = av.AudioFrame.from_ndarray(stereo, format="s16", layout="stereo")
        frame.sample_rate = 48_000
        sink.mux(track.encode(frame))
        sink.mux(track.encode(None))
    recording = adts.split(encoding.transcode(tmp_path / "silence.wav"))
    assert recording.rate_hz == encoding.RATE_HZ
    assert recording.duration_s == pytest.approx(1, abs=0.15)


def frames(count: int, rate_hz: int = 22050) -> Recording:
    return Recording(rate_hz, tuple(number.to_bytes(4, "big") for number in range(count)))


@given(counts=st.lists(st.integers(1, 90), min_size=1, max_size=4), segment_s=st.floats(0.05, 5))
def test_the_segments_together_are_the_parts_in_order(counts: list[int], segment_s: float):
    parts = [frames(count) for count in counts]
    timeline = lay_out(parts, segment_s)
    played = [frame for number in range(timeline.count) for frame in timeline.frames_of(number)]
    assert played == [frame for part in parts for frame in part.frames]
    assert sum(timeline.length_s(number) for number in range(timeline.count)) == pytest.approx(timeline.duration_s)


@given(count=st.integers(1, 500), per_segment=st.integers(1, 90))
def test_a_segment_is_complete_at_its_last_sound_and_not_before(count: int, per_segment: int):
    timeline = Timeline(frames(count).frames, 22050, per_segment)
    for number in range(timeline.count):
        end_s = timeline.begins_s(number) + timeline.length_s(number)
        assert timeline.complete_by(end_s) == number + 1
        assert timeline.complete_by(end_s - 0.001) == number


def test_parts_are_repeated_as_wholes_until_the_time_is_filled():
    timeline = lay_out([frames(10), frames(5)], segment_s=1, repeat_until_s=100 * SAMPLES_PER_FRAME / 22050)
    assert len(timeline.frames) == 105


def test_parts_of_different_sample_rates_are_refused():
    with pytest.raises(ValueError, match=r"\[16000, 22050\]"):
        lay_out([frames(1, 16000), frames(1, 22050)], segment_s=1)
