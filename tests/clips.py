"""Small media clips made in code: tones in any container, and real HLS segments cut out of one continuous encoding."""

import io
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from numpy.typing import NDArray

FRAGMENTED = {"movflags": "frag_keyframe+empty_moov+default_base_moof"}


def tone(seconds: float, rate: int, hertz: float = 440.0) -> NDArray[np.float32]:
    return (0.4 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def clip(
    container: str,
    codec: str,
    planes: NDArray[np.float32],
    rate: int,
    *,
    layout: str | None = None,
    options: dict[str, str] | None = None,
    video: bool = False,
) -> bytes:
    """`planes` (channels by samples, or mono samples) as a media file; with `video` beside a dark picture."""
    file = io.BytesIO()
    _write(file, container, codec, planes, rate, layout, options, video)
    return file.getvalue()


def hls_segments(
    folder: Path, codec: str, planes: NDArray[np.float32], rate: int, *, seconds: float = 2.0, kind: str = "mpegts"
) -> list[bytes]:
    """One continuous encoding cut by FFmpeg's own HLS writer. `kind`: mpegts, or fmp4, init section in front."""
    options = {"hls_time": str(seconds), "hls_segment_type": kind, "hls_list_size": "0"}
    _write(str(folder / "list.m3u8"), "hls", codec, planes, rate, None, options, False)
    suffix = "ts" if kind == "mpegts" else "m4s"
    files = sorted(folder.glob(f"list*.{suffix}"), key=lambda p: int(p.stem.removeprefix("list")))
    head = b"" if kind == "mpegts" else (folder / "init.mp4").read_bytes()
    return [head + file.read_bytes() for file in files]


def picture_only(container: str = "mpegts", seconds: float = 1.0) -> bytes:
    """A video without sound."""
    file = io.BytesIO()
    with av.open(file, "w", format=container) as output:
        _mux_picture(output, _picture(output), seconds)
    return file.getvalue()


def _write(file, container, codec, planes, rate, layout, options, video) -> None:
    planes = np.atleast_2d(planes)
    with av.open(file, "w", format=container, options=options or {}) as output:
        stream = output.add_stream(codec, rate=rate)
        stream.layout = layout or {1: "mono", 2: "stereo", 6: "5.1"}[planes.shape[0]]
        picture = _picture(output) if video else None
        for start in range(0, planes.shape[1], 1024):
            output.mux(stream.encode(_frame(planes[:, start : start + 1024], rate, stream.layout.name, start)))
        output.mux(stream.encode(None))
        if picture is not None:
            _mux_picture(output, picture, planes.shape[1] / rate)


def _frame(block, rate, layout, start) -> av.AudioFrame:
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(block), format="fltp", layout=layout)
    frame.rate, frame.pts, frame.time_base = rate, start, Fraction(1, rate)
    return frame


def _picture(output):
    stream = output.add_stream("mpeg2video", rate=25)
    stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
    return stream


def _mux_picture(output, stream, seconds: float) -> None:
    for number in range(round(25 * seconds)):
        frame = av.VideoFrame.from_ndarray(np.zeros((72, 64), np.uint8), format="yuv420p")
        frame.pts, frame.time_base = number, Fraction(1, 25)
        output.mux(stream.encode(frame))
    output.mux(stream.encode(None))
