"""Strangers' media become 16 kHz mono samples, whole or refused by name, and never open anything."""

import io
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import av
import numpy as np
import pytest

from app.asr.audio import RATE, AudioRefused, Recording, to_mono
from tests.clips import clip, picture_only, tone
from tests.speech_kit import silence, wav

SECONDS = 6
LEFT_ONLY = np.stack([tone(SECONDS, 44_100), tone(SECONDS, 44_100) * 0])
OPPOSITE = np.stack([tone(SECONDS, 44_100), -tone(SECONDS, 44_100)])
CENTRE_OF_SIX = np.stack([tone(SECONDS, 48_000) * (channel == 2) for channel in range(6)])


def decoded(data: bytes) -> np.ndarray:
    recording = Recording(data)
    try:
        return np.concatenate(list(recording.blocks()))
    finally:
        recording.close()


def refusal(data: bytes) -> str:
    with pytest.raises(AudioRefused) as refused:
        decoded(data)
    return refused.value.code


@pytest.mark.parametrize(
    ("container", "codec", "rate"),
    [
        ("mp3", "libmp3lame", 44_100),
        ("mp4", "aac", 44_100),
        ("adts", "aac", 48_000),
        ("ogg", "libopus", 48_000),
        ("flac", "flac", 96_000),
        ("wav", "pcm_s16le", 8_000),
        ("mpegts", "aac", 48_000),
        ("matroska", "libopus", 16_000),
    ],
)
def test_every_usual_container_is_decoded_to_its_end(container: str, codec: str, rate: int) -> None:
    samples = decoded(clip(container, codec, tone(SECONDS, rate), rate))
    assert len(samples) / RATE == pytest.approx(SECONDS, abs=0.1)
    assert np.sqrt(np.mean(samples**2)) == pytest.approx(0.28, abs=0.03)


@pytest.mark.parametrize(
    ("planes", "rate"), [(LEFT_ONLY, 44_100), (OPPOSITE, 44_100), (CENTRE_OF_SIX, 48_000)], ids=["left", "minus", "5.1"]
)
def test_sound_that_is_not_in_both_channels_is_heard(planes: np.ndarray, rate: int) -> None:
    samples = decoded(clip("wav", "pcm_s16le", planes, rate))
    assert np.sqrt(np.mean(samples**2)) > 0.1


def test_a_change_of_rate_and_channels_in_mid_stream_loses_nothing() -> None:
    first = clip("mpegts", "aac", np.stack([tone(4, 44_100)] * 2), 44_100)
    second = clip("mpegts", "aac", tone(4, 48_000), 48_000)
    assert len(decoded(first + second)) / RATE == pytest.approx(8, abs=0.2)


@pytest.mark.parametrize(("container", "codec"), [("mp3", "libmp3lame"), ("mp4", "aac"), ("mpegts", "aac")])
def test_damage_in_the_middle_costs_only_the_damaged_part(container: str, codec: str) -> None:
    data = bytearray(clip(container, codec, tone(20, 44_100), 44_100))
    middle = len(data) // 2
    data[middle : middle + 4096] = random.Random(4).randbytes(4096)
    assert 18.5 <= len(decoded(bytes(data))) / RATE <= 20.1


def test_a_file_that_is_cut_off_says_how_long_it_should_be() -> None:
    data = clip("mp3", "libmp3lame", tone(20, 44_100), 44_100)
    recording = Recording(data[: len(data) // 2])
    assert recording.stated_s == pytest.approx(20, abs=0.1)
    assert sum(len(block) for block in recording.blocks()) / RATE == pytest.approx(10, abs=0.3)
    recording.close()


def test_memory_does_not_grow_with_the_length() -> None:
    recording = Recording(clip("wav", "pcm_s16le", tone(30, 8_000), 8_000))
    assert max(len(block) for block in recording.blocks()) < 2 * RATE
    recording.close()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "empty_audio"),
        (b"<html><body>502 Bad Gateway</body></html>", "unreadable_audio"),
        (random.Random(1).randbytes(20_000), "unreadable_audio"),
        (wav(silence(0)), "no_samples"),
        (clip("adts", "aac", tone(1, 44_100), 44_100)[:60], "no_samples"),
        (picture_only(), "no_audio_stream"),
        (picture_only("matroska"), "no_audio_stream"),
    ],
    ids=["zero-bytes", "html", "noise", "wav-header", "aac-header", "video-ts", "video-mkv"],
)
def test_what_holds_no_sound_is_refused_by_name(data: bytes, code: str) -> None:
    assert refusal(data) == code


def test_channels_that_nearly_cancel_out_are_taken_as_their_difference() -> None:
    noise = np.random.default_rng(3).normal(size=1000).astype(np.float32) * 0.1
    assert np.allclose(to_mono(np.stack([noise, -0.99 * noise])), 0.995 * noise, atol=1e-6)
    assert np.allclose(to_mono(np.stack([noise, noise])), noise, atol=1e-6)


@pytest.fixture
def listener() -> Iterator[tuple[str, list[str]]]:
    """A private HTTP server, and the requests it saw."""
    seen: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", seen
    server.shutdown()
    thread.join()
    server.server_close()


def playlist(url: str) -> bytes:
    return f"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{url}/a.ts\n#EXT-X-ENDLIST\n".encode()


def manifest(url: str) -> bytes:
    return (
        '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" '
        'mediaPresentationDuration="PT9S" profiles="urn:mpeg:dash:profile:isoff-on-demand:2011"><Period>'
        '<AdaptationSet mimeType="audio/mp4"><Representation id="1" bandwidth="9">'
        f"<BaseURL>{url}/a.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>"
    ).encode()


def test_a_playlist_or_file_list_dressed_as_audio_opens_nothing(listener) -> None:
    url, seen = listener
    lists = [
        playlist(url),
        b"ID3\x03\x00\x00\x00\x00\x00\x00" + playlist(url),
        playlist("file:///etc"),
        f"ffconcat version 1.0\nfile '{url}/a.mp3'\n".encode(),
        manifest(url),
        f"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\nc=IN IP4 127.0.0.1\r\nm=audio {url[-5:]} RTP/AVP 0\r\n".encode(),
    ]
    assert {refusal(data) for data in lists} == {"unreadable_audio"}
    assert seen == []


def test_the_library_would_open_a_playlist_if_it_were_let(listener) -> None:
    """The control of the test above: the listener does see what FFmpeg fetches by itself."""
    url, seen = listener
    with pytest.raises(av.FFmpegError):
        av.open(io.BytesIO(playlist(url)), format="hls").close()
    assert seen == ["/a.ts"]
