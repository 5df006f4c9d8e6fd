"""Decoding strangers' media: what is opened, what comes out, and seams between segments."""

import socket
from pathlib import Path

import numpy as np
import pytest

from activities.adapters import decoding
from activities.adapters.decoding import RATE, NoAudio, SampleDecoder, Undecodable, decode_seconds
from tests.clips import FRAGMENTED, clip, hls_segments, picture_only, tone


def samples_of(*pieces: bytes, limit_s: float = 100.0) -> np.ndarray:
    decoder = SampleDecoder()
    blocks = [block for piece in pieces for block in decoder.decode(piece, limit_s)]
    return np.concatenate([*blocks, *decoder.restart()])


def loudness(samples: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(samples / 32768.0))))


@pytest.mark.parametrize(
    ("container", "codec", "rate"),
    [
        ("mpegts", "aac", 44_100),
        ("adts", "aac", 48_000),
        ("mp3", "libmp3lame", 44_100),
        ("mp4", "aac", 44_100),
        ("ogg", "libopus", 48_000),
        ("webm", "libopus", 48_000),
        ("flac", "flac", 96_000),
        ("wav", "pcm_s16le", 8_000),
    ],
)
def test_every_listed_kind_comes_out_in_its_length(container: str, codec: str, rate: int) -> None:
    data = clip(container, codec, tone(3.0, rate), rate)
    assert decode_seconds(data) == pytest.approx(3.0, abs=0.12)
    assert loudness(samples_of(data)) == pytest.approx(0.4 / 2**0.5, abs=0.03)


@pytest.mark.parametrize(
    ("left", "right"),
    [(1.0, 0.0), (0.0, 1.0), (1.0, -1.0), (1.0, -0.98), (1.0, 1.0)],
    ids=["left only", "right only", "opposite", "nearly opposite", "both"],
)
def test_sound_survives_the_way_to_one_channel(left: float, right: float) -> None:
    wave = tone(2.0, 48_000)
    data = clip("wav", "pcm_s16le", np.stack([wave * left, wave * right]), 48_000)
    assert loudness(samples_of(data)) > 0.1


def test_six_channels_with_speech_in_the_middle_are_heard() -> None:
    planes = np.zeros((6, 96_000), np.float32)
    planes[2] = tone(2.0, 48_000)
    assert loudness(samples_of(clip("wav", "pcm_s16le", planes, 48_000))) > 0.05


@pytest.mark.parametrize("kind", ["mpegts", "fmp4"])
def test_segments_of_one_encoding_join_without_a_seam(tmp_path: Path, kind: str) -> None:
    wave = tone(8.0, 44_100)
    segments = hls_segments(tmp_path, "aac", wave, 44_100, kind=kind)
    assert len(segments) >= 4
    joined = samples_of(*segments)
    assert len(joined) / RATE == pytest.approx(8.0, abs=0.1)
    steady = joined[RATE // 2 : 7 * RATE].astype(np.float64)
    # A pure tone obeys x[n+1] + x[n-1] = 2 cos(w) x[n]; a seam would break that by far more than the coding does.
    residue = steady[2:] + steady[:-2] - 2 * np.cos(2 * np.pi * 440 / RATE) * steady[1:-1]
    assert np.abs(residue).max() < 50


def test_audio_beside_a_picture_is_found() -> None:
    data = clip("mpegts", "aac", tone(2.0, 48_000), 48_000, video=True)
    assert decode_seconds(data) == pytest.approx(2.0, abs=0.1)


def test_a_picture_without_sound_and_no_bytes_have_different_names() -> None:
    with pytest.raises(NoAudio):
        decode_seconds(picture_only())
    for data in (b"", b"\x00" * 5000, b"hello", clip("wav", "pcm_s16le", tone(1, 8000), 8000)[:20]):
        with pytest.raises(Undecodable):
            decode_seconds(data)


def test_a_header_without_samples_is_nothing() -> None:
    whole = clip("mp4", "aac", tone(1.0, 44_100), 44_100, options=FRAGMENTED)
    assert decode_seconds(whole[: whole.index(b"moof") - 4]) == 0


def test_damage_in_the_middle_costs_what_it_covers_and_not_the_rest() -> None:
    data = bytearray(clip("adts", "aac", tone(10.0, 44_100), 44_100))
    middle = len(data) // 2
    data[middle : middle + 4096] = bytes(4096)
    lost_s = 10.0 * 4096 / len(data)
    assert decode_seconds(bytes(data)) == pytest.approx(10.0 - lost_s, abs=0.3)


def test_no_more_comes_out_of_a_piece_than_its_limit() -> None:
    assert len(samples_of(clip("flac", "flac", tone(30.0, 16_000) * 0, 16_000), limit_s=5.0)) <= 5 * RATE


@pytest.mark.parametrize("rate", [1, 100, 400_000])
def test_absurd_sample_rates_are_refused(rate: int) -> None:
    data = bytearray(clip("wav", "pcm_s16le", tone(1.0, 8_000), 8_000))
    data[24:28] = rate.to_bytes(4, "little")
    with pytest.raises(Undecodable):
        decode_seconds(bytes(data))


def traps(port: int, secret: Path) -> dict[str, bytes]:
    """Lists dressed as media: each names an address and a local file."""
    url = f"http://127.0.0.1:{port}/x"
    dash = f'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><BaseURL>{url}</BaseURL></MPD>'
    return {
        "hls": f"#EXTM3U\n#EXTINF:4,\n{url}.ts\n#EXTINF:4,\n{secret}\n#EXT-X-ENDLIST\n".encode(),
        "concat": f"ffconcat version 1.0\nfile {url}.mp3\nfile {secret}\n".encode(),
        "dash": dash.encode(),
        "sdp": f"v=0\no=- 0 0 IN IP4 127.0.0.1\nc=IN IP4 127.0.0.1\nm=audio {port} RTP/AVP 0\n".encode(),
        "playlist in an ID3 tag": b"ID3\x04\0\0\0\0\0\0" + f"#EXTM3U\n#EXTINF:4,\n{url}.ts\n".encode(),
        "rtsp": f"RTSP redirect\nrtsp://127.0.0.1:{port}/x".encode(),
    }


@pytest.mark.parametrize("trap", list(traps(0, Path("x"))))
@pytest.mark.parametrize("with_list", [True, False], ids=["format list", "protocol list alone"])
def test_a_list_dressed_as_media_opens_nothing(tmp_path: Path, monkeypatch, trap: str, with_list: bool) -> None:
    secret = tmp_path / "secret.ts"
    secret.write_bytes(clip("mpegts", "aac", tone(1.0, 44_100), 44_100))
    if not with_list:
        monkeypatch.setattr(decoding, "FORMATS", f"{decoding.FORMATS},hls,concat,dash,sdp,rtsp")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        with pytest.raises((Undecodable, NoAudio)):
            decode_seconds(traps(listener.getsockname()[1], secret)[trap])
        with pytest.raises(BlockingIOError):
            listener.accept()
