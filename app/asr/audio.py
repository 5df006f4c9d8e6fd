"""Decodes submitted bytes into 16 kHz mono samples, block by block, so that memory does not grow with the length.

The media library is given bytes and a list of containers, never an address and no protocol: a playlist or file list
that is dressed as audio is refused before it could name anything to open. Blocking; runs in the recognition's thread.
"""

import io
from collections.abc import Iterator
from contextlib import suppress
from typing import cast

import av
import numpy as np
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.audio.stream import AudioStream
from av.container import InputContainer
from av.error import EOFError as EndOfFile
from av.error import FFmpegError
from av.packet import Packet
from numpy.typing import NDArray

RATE = 16_000
FORMATS = "aac,ac3,aiff,amr,asf,avi,caf,eac3,flac,flv,matroska,mov,mp3,mpeg,mpegts,ogg,w64,wav,webm,mp4,m4a"
LONGEST_S = 24 * 3600
WITHOUT_LENGTH = ("aac", "ac3", "eac3", "amr")
"""Containers that state no length: what the library says of them is a guess from the first packets."""
DAMAGE_LIMIT = 10_000
"""Unreadable packets after which a file counts as over; each costs a moment, and a hostile file can hold millions."""

Samples = NDArray[np.float32]


class AudioRefused(Exception):
    """These bytes can never be transcribed. `code` is stable, the text is for people."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Recording:
    """Audio that has been opened. `stated_s` is the length its container claims, None where it claims none."""

    def __init__(self, data: bytes) -> None:
        self._container = _open(data)
        self._stream = _audio_stream(self._container)
        self.stated_s = _stated_seconds(self._container, self._stream)

    def blocks(self) -> Iterator[Samples]:
        """All samples in order, about a second at a time. Raises AudioRefused if there is not one."""
        mixer, count = _Mixer(), 0
        for frame in _frames(self._stream, self._container):
            for samples in mixer.add(frame):
                count += len(samples)
                yield samples
            if count > LONGEST_S * RATE:
                raise AudioRefused(
                    "too_long", f"The audio is longer than {LONGEST_S // 3600} hours. Submit it in parts."
                )
        for samples in mixer.finish():
            count += len(samples)
            yield samples
        if count == 0:
            raise AudioRefused("no_samples", "The file names an audio track, but not one sample of it can be decoded.")

    def close(self) -> None:
        self._container.close()


def _open(data: bytes) -> InputContainer:
    if not data:
        raise AudioRefused("empty_audio", "The audio has zero bytes.")
    limits = {"format_whitelist": FORMATS, "protocol_whitelist": "none"}
    try:
        return av.open(io.BytesIO(data), "r", options=limits, metadata_errors="ignore")
    except (FFmpegError, ValueError) as error:
        raise AudioRefused(
            "unreadable_audio", "This is not an audio or video file of a kind that is accepted."
        ) from error


def _audio_stream(container: InputContainer) -> AudioStream:
    if not container.streams.audio:
        container.close()
        raise AudioRefused("no_audio_stream", "The file holds no audio track.")
    stream = container.streams.audio[0]
    if cast(object, stream.codec_context) is None:
        container.close()
        raise AudioRefused("unknown_codec", "The file's audio track has a codec that is not known here.")
    return stream


def _stated_seconds(container: InputContainer, stream: AudioStream) -> float | None:
    if container.format.name in WITHOUT_LENGTH:
        return None
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    return container.duration / av.time_base if container.duration else None


def _frames(stream: AudioStream, container: InputContainer) -> Iterator[AudioFrame]:
    """Decode everything that can be decoded; damage is stepped over, packet by packet."""
    damaged = 0
    for packet in _packets(stream, container):
        try:
            yield from stream.codec_context.decode(packet)
        except EndOfFile:
            return
        except FFmpegError:
            damaged += 1
            if damaged >= DAMAGE_LIMIT:
                return


def _packets(stream: AudioStream, container: InputContainer) -> Iterator[Packet | None]:
    """The packets, read on behind damage for as long as that yields any; then None, which drains the decoder."""
    for _ in range(DAMAGE_LIMIT):
        read = 0
        try:
            for packet in container.demux(stream):
                if packet.size:
                    read += 1
                    yield packet
            break
        except FFmpegError:
            if read == 0:
                break
    yield None


class _Mixer:
    """Frames of any rate and layout to blocks of 16 kHz mono; a change of either gets a new resampler."""

    def __init__(self) -> None:
        self._resampler: AudioResampler | None = None
        self._shape: tuple[str, str, int] | None = None
        self._held: list[Samples] = []
        self._held_samples = 0

    def add(self, frame: AudioFrame) -> Iterator[Samples]:
        shape = (frame.format.name, frame.layout.name, frame.sample_rate)
        if shape != self._shape:
            self._drain()
            self._resampler, self._shape = _resampler(frame), shape
        frame.pts = None  # times count samples: what a container says of them may jump
        self._resample(frame)
        if self._held_samples >= RATE:
            yield self._mixed()

    def finish(self) -> Iterator[Samples]:
        """What is left over."""
        self._drain()
        if self._held_samples:
            yield self._mixed()

    def _drain(self) -> None:
        if self._resampler is not None:
            self._resample(None)
            self._resampler = None

    def _resample(self, frame: AudioFrame | None) -> None:
        """Hold what becomes of the frame; None drains the resampler."""
        with suppress(EndOfFile):
            for resampled in self._resampler.resample(frame) if self._resampler else []:
                planes = cast(Samples, resampled.to_ndarray())
                self._held.append(planes)
                self._held_samples += planes.shape[-1]

    def _mixed(self) -> Samples:
        parts = [planes if planes.shape[0] == 2 else np.repeat(planes, 2, axis=0) for planes in self._held]
        self._held, self._held_samples = [], 0
        return to_mono(np.concatenate(parts, axis=1))


def _resampler(frame: AudioFrame) -> AudioResampler:
    if not 1_000 <= frame.sample_rate <= 768_000:
        raise AudioRefused("unreadable_audio", f"The audio claims a sample rate of {frame.sample_rate} Hz.")
    layout = "mono" if len(frame.layout.channels) == 1 else "stereo"
    return AudioResampler(format="fltp", layout=layout, rate=RATE)


def to_mono(planes: Samples) -> Samples:
    """Two channels as one: their mean, or half their difference where they cancel each other out."""
    left, right = np.nan_to_num(planes, posinf=0.0, neginf=0.0)
    middle, side = (left + right) / 2, (left - right) / 2
    return np.clip(side if _power(middle) < 0.01 * _power(side) else middle, -1.0, 1.0)


def _power(samples: Samples) -> float:
    return float(np.mean(np.square(samples))) if samples.size else 0.0
