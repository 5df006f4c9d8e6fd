"""Decodes strangers' media with PyAV into 16 kHz mono samples.

FFmpeg is given bytes, never an address: only the containers and codecs listed here are opened, and no protocol at all,
so that a playlist or file list dressed as media leads nowhere. Blocking; run it in a thread.
"""

import io
import logging
from collections.abc import Iterable, Iterator
from typing import IO, cast

import av
import numpy as np
from av.audio.codeccontext import AudioCodecContext
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.audio.stream import AudioStream
from av.codec.context import Flags2
from av.container import InputContainer
from av.error import FFmpegError
from av.packet import Packet
from numpy.typing import NDArray

RATE = 16_000
FORMATS = "mpegts,aac,mp3,mov,mp4,m4a,ogg,flac,wav,matroska,webm,ac3,eac3"
CODECS = (
    "aac,aac_latm,mp3float,mp3,mp2float,mp2,mp1float,mp1,opus,libopus,vorbis,flac,alac,ac3,eac3,"
    "pcm_s16le,pcm_s16be,pcm_s24le,pcm_s32le,pcm_u8,pcm_f32le,pcm_f64le,pcm_mulaw,pcm_alaw"
)
RATES = range(4_000, 384_001)
BLOCK = RATE  # samples mixed and handed on at once: one second
MAX_BAD_PACKETS = 1_000

Samples = NDArray[np.int16]
Planes = NDArray[np.float32]  # channels by samples

log = logging.getLogger(__name__)


class NoAudio(Exception):
    """There is no audio in this piece of media."""


class Undecodable(Exception):
    """This piece of media could not be decoded; says why."""


def open_media(data: bytes | IO[bytes]) -> InputContainer:
    """Open media, bytes or an open file. Raises Undecodable for anything that is not a listed container."""
    if not data:
        raise Undecodable("it is empty")
    file = io.BytesIO(data) if isinstance(data, bytes) else data
    limits = {"format_whitelist": FORMATS, "codec_whitelist": CODECS, "protocol_whitelist": "none"}
    try:
        return av.open(file, "r", container_options=limits)
    except (FFmpegError, ValueError) as error:
        raise Undecodable(f"it is no audio or video of a known kind ({_words(error)})") from error


def audio_of(container: InputContainer) -> AudioStream:
    """The audio stream to listen to. Raises NoAudio, or Undecodable for a codec that is not listed."""
    if not container.streams.audio:
        raise NoAudio("it holds no audio")
    stream = container.streams.audio[0]
    codec = stream.codec_context
    if codec is None or codec.name not in CODECS.split(","):
        raise Undecodable(f"its audio codec {codec.name if codec else '(unknown)'} is not taken")
    return stream


class SampleDecoder:
    """Decodes pieces of one continuous audio into one continuous run of samples.

    Each piece is opened on its own, but packets of the same kind go through the same decoder and resampler, so that
    the seams between segments stay silent. `restart` forgets what came before.
    """

    def __init__(self) -> None:
        self._codec: AudioCodecContext | None = None
        self._kind: tuple | None = None
        self._mixer = _Mixer()

    def decode(self, data: bytes | IO[bytes], limit_s: float) -> Iterator[Samples]:
        """The samples of one piece, at most `limit_s` seconds. Raises NoAudio or Undecodable."""
        with open_media(data) as container:
            stream = audio_of(container)
            codec = self._codec_for(stream)
            room = int(limit_s * RATE)
            for frame in _frames(codec, _packets(container, stream)):
                for samples in self._mixer.add(frame):
                    yield samples[:room]
                    room -= len(samples)
                if room <= 0:
                    return
            yield from (samples[:room] for samples in self._mixer.rest())

    def restart(self) -> Iterator[Samples]:
        """End the run: what the decoder and the resampler still hold."""
        if self._codec is not None:
            for frame in _frames(self._codec, [None]):
                yield from self._mixer.add(frame)
        yield from self._mixer.finish()
        self._codec = self._kind = None

    def _codec_for(self, stream: AudioStream) -> AudioCodecContext:
        """The decoder of the run, replaced where the audio is of another kind."""
        codec = stream.codec_context
        kind = (codec.name, codec.extradata, codec.sample_rate, codec.layout.name)
        if self._codec is None or kind != self._kind:
            codec.flags2 |= Flags2.skip_manual  # else the edit list in each init section would cut again
            self._codec, self._kind = codec, kind
        return self._codec


def _packets(container: InputContainer, stream: AudioStream) -> Iterator[Packet]:
    """The packets up to the end, or up to damage that the container's reader cannot pass."""
    try:
        for packet in container.demux(stream):
            if packet.size:  # the empty one at the end would end the decoder's run
                yield packet
    except FFmpegError as error:
        log.info("a piece of media is damaged: %s", _words(error))


def _frames(codec: AudioCodecContext, packets: Iterable[Packet | None]) -> Iterator[AudioFrame]:
    """Decode packets, passing over damaged ones; None takes out what the decoder still holds."""
    bad = 0
    for packet in packets:
        try:
            yield from codec.decode(packet)
        except FFmpegError:
            bad += 1
            if bad >= MAX_BAD_PACKETS:
                return


class _Mixer:
    """Resamples frames to 16 kHz mono in blocks of a second."""

    def __init__(self) -> None:
        self._resampler: AudioResampler | None = None
        self._shape: tuple | None = None
        self._held: list[Planes] = []

    def add(self, frame: AudioFrame) -> Iterator[Samples]:
        shape = (frame.format.name, frame.layout.name, frame.sample_rate)
        if shape != self._shape:
            yield from self.finish()
            self._resampler, self._shape = _resampler(frame), shape
        frame.pts = None  # times are counted in samples; those of segments jump
        self._hold(frame)
        if sum(planes.shape[1] for planes in self._held) >= BLOCK:
            yield self._mixed()

    def rest(self) -> Iterator[Samples]:
        """The samples of the last, shorter block."""
        if self._held:
            yield self._mixed()

    def finish(self) -> Iterator[Samples]:
        """The rest, with what the resampler holds."""
        self._hold(None)
        yield from self.rest()
        self._resampler = self._shape = None

    def _hold(self, frame: AudioFrame | None) -> None:
        resampled = self._resampler.resample(frame) if self._resampler else []
        self._held += [cast(Planes, f.to_ndarray()) for f in resampled if f is not None]

    def _mixed(self) -> Samples:
        planes, self._held = np.concatenate(self._held, axis=1), []
        return to_mono(planes)


def _resampler(frame: AudioFrame) -> AudioResampler:
    if frame.sample_rate not in RATES:
        raise Undecodable(f"its sample rate of {frame.sample_rate} Hz is not taken")
    layout = "stereo" if len(frame.layout.channels) == 2 else "mono"
    return AudioResampler(format="fltp", layout=layout, rate=RATE)


def to_mono(planes: Planes) -> Samples:
    """One or two channels as one. Two that cancel each other out are taken as their difference instead."""
    if planes.shape[0] == 1:
        mono = planes[0]
    else:
        middle, side = (planes[0] + planes[1]) / 2, (planes[0] - planes[1]) / 2
        mono = side if _power(middle) < 0.01 * _power(side) else middle
    return np.clip(np.nan_to_num(mono) * 32767.0, -32768, 32767).astype(np.int16)


def _power(samples: NDArray[np.float32]) -> float:
    return float(np.mean(np.square(samples, dtype=np.float64))) if samples.size else 0.0


def decode_seconds(data: bytes) -> float:
    """Length of the audio in a complete media file, by decoding all of it. Raises NoAudio or Undecodable."""
    decoder = SampleDecoder()
    count = sum(len(samples) for samples in decoder.decode(data, float(24 * 3600)))
    return (count + sum(len(samples) for samples in decoder.restart())) / RATE


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
